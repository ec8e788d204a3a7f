/**
 * The least that a queue in DynamoDB does: a conditional put, and two conditional updates by the bare SDK. It needs no index:
 * what is due, and who waits, is known in the process.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import { type Session, smallPayload, smallResult } from '../backends/backend.ts'

export async function bareTable(client: DynamoDBClient, tableName: string): Promise<Session> {
  await client.send(
    new CreateTableCommand({
      TableName: tableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    }),
  )
  const isActive = async () => {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }))
    return Table?.TableStatus === 'ACTIVE'
  }
  while (!(await isActive())) await sleep(5)
  const result = JSON.stringify(smallResult)
  const due: string[] = []
  const waiters = new Map<string, (result: unknown) => void>()
  let idle: (() => void)[] = []
  const loops: Promise<void>[] = []
  let stopped = false
  let completed = 0
  let tokens = 0

  /** Answers the result of an item that is there already. */
  const enqueue = async (id: string, payload: unknown = smallPayload): Promise<unknown> => {
    try {
      await client.send(
        new PutItemCommand({
          TableName: tableName,
          Item: { pk: { S: id }, state: { S: 'queued' }, payload: { S: JSON.stringify(payload) } },
          ConditionExpression: 'attribute_not_exists(pk)',
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      )
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error
      const text = error.Item?.['result']?.S
      return text === undefined ? undefined : JSON.parse(text)
    }
    due.push(id)
    idle.pop()?.()
    return undefined
  }
  const claim = async (id: string, token: string): Promise<unknown> => {
    const { Attributes } = await client.send(
      new UpdateItemCommand({
        TableName: tableName,
        Key: { pk: { S: id } },
        UpdateExpression: 'SET #s = :p, #t = :t, #l = :l',
        ConditionExpression: '#s = :q',
        ExpressionAttributeNames: { '#s': 'state', '#t': 'token', '#l': 'leaseEnd' },
        ExpressionAttributeValues: {
          ':p': { S: 'processing' },
          ':q': { S: 'queued' },
          ':t': { S: token },
          ':l': { N: String(Date.now() + 30_000) },
        },
        ReturnValues: 'ALL_NEW',
      }),
    )
    return JSON.parse(Attributes?.['payload']?.S ?? 'null')
  }
  const settle = (id: string, token: string): Promise<unknown> =>
    client.send(
      new UpdateItemCommand({
        TableName: tableName,
        Key: { pk: { S: id } },
        UpdateExpression: 'SET #s = :c, #r = :r REMOVE #t, #l, #p',
        ConditionExpression: '#t = :t',
        ExpressionAttributeNames: { '#s': 'state', '#r': 'result', '#t': 'token', '#l': 'leaseEnd', '#p': 'payload' },
        ExpressionAttributeValues: { ':c': { S: 'completed' }, ':r': { S: result }, ':t': { S: token } },
      }),
    )
  const loop = async (onRun: () => unknown): Promise<void> => {
    while (!stopped) {
      const id = due.shift()
      if (id === undefined) {
        await new Promise<void>((resolve) => idle.push(resolve))
        continue
      }
      const token = `token-${tokens++}`
      await claim(id, token)
      await onRun()
      await settle(id, token)
      completed++
      waiters.get(id)?.(smallResult)
      waiters.delete(id)
    }
  }
  return {
    enqueue,
    duplicate: enqueue,
    wait(id, payload) {
      return new Promise((resolve, reject) => {
        waiters.set(id, resolve)
        enqueue(id, payload).catch(reject)
      })
    },
    async work(concurrency, onRun) {
      for (let count = 0; count < concurrency; count++) loops.push(loop(onRun))
    },
    completed: () => completed,
    async close() {
      stopped = true
      for (const wake of idle) wake()
      idle = []
      await Promise.all(loops)
    },
  }
}
