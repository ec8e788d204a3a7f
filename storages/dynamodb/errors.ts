/**
 * What DynamoDB answers, as errors that say what to do and give nothing away.
 *
 * @module
 */

import { AskonceError, StorageError } from '../../src/errors.ts'
import type { TableDefinition } from './definition.ts'
import { ttlAttribute } from './schema.ts'

/** The table, or its index, does not exist. `definition` is what CreateTable must be given. */
export class TableMissingError extends StorageError {
  readonly tableName: string
  readonly definition: TableDefinition

  constructor(what: string, definition: TableDefinition, options: { cause?: unknown } = {}) {
    super(
      `${what} does not exist in this account and region. Call storage.createTable(), or make it with: aws dynamodb create-table --cli-input-json '${JSON.stringify(definition)}' and switch on TTL for the attribute '${ttlAttribute}'`,
      { ...options, retryable: false },
    )
    this.tableName = definition.TableName
    this.definition = definition
  }
}
Object.defineProperty(TableMissingError.prototype, 'name', {
  value: 'TableMissingError',
  writable: true,
  configurable: true,
})

const throttles = new Set([
  'ProvisionedThroughputExceededException',
  'ProvisionedThroughputExceeded',
  'RequestLimitExceeded',
  'ThrottlingException',
  'Throttling',
  'ThrottledException',
  'TooManyRequestsException',
  'LimitExceededException',
])

const remedies: Readonly<Record<string, string>> = {
  AccessDeniedException: 'Permission is denied: give the role the actions that docs/guides/dynamodb.md lists',
  UnrecognizedClientException: 'The credentials are not known: check them, and the region',
  InvalidSignatureException: 'The signature is refused: check the secret key and the machine’s clock',
  SignatureDoesNotMatch: 'The signature is refused: check the secret key and the machine’s clock',
  ExpiredTokenException: 'The session token has expired: get a new one',
  MissingAuthenticationTokenException: 'There are no credentials: give the client some',
  CredentialsProviderError: 'There are no credentials: give the client some',
  TokenProviderError: 'There are no credentials: give the client some',
  ValidationException: 'DynamoDB refuses the request: does the table fit the definition in docs/guides/dynamodb.md?',
  ItemCollectionSizeLimitExceededException: 'A local index of the table is full',
}

/** Messages of these may quote the signed request, session token included. */
const secretive = new Set(['InvalidSignatureException', 'SignatureDoesNotMatch', 'IncompleteSignatureException'])

/** The name of an AWS error, or ''. */
export function awsName(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

/** Whether DynamoDB, its table or an index has refused the request for its rate: it was not made. */
export function isThrottle(error: unknown): boolean {
  return throttles.has(awsName(error))
}

/** Whether a write's condition did not hold. */
export function isConditionFalse(error: unknown): boolean {
  return awsName(error) === 'ConditionalCheckFailedException'
}

/** A failed call as a StorageError. */
export function storageError(doing: string, error: unknown): AskonceError {
  if (error instanceof AskonceError) return error
  const name = awsName(error)
  const remedy = remedies[name]
  const status = (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode
  const retryable = remedy === undefined && (status === undefined || status >= 500 || isThrottle(error))
  const what = remedy ?? (retryable ? 'It may succeed later' : 'Look at the cause')
  return new StorageError(`DynamoDB could not ${doing}${name && ` (${name})`}. ${what}`, {
    cause: cleaned(error),
    retryable,
  })
}

/** The error without what may hold secrets: request, response and item; and URL credentials or tokens in its message. */
function cleaned(error: unknown): Error {
  const name = awsName(error) || 'Error'
  const {
    message = '',
    code,
    $metadata,
  } = (error ?? {}) as {
    message?: string
    code?: unknown
    $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number }
  }
  const told = secretive.has(name) ? 'the message is left out, as it may quote the signed request' : redacted(message)
  const cause = new Error(told)
  cause.name = name
  const { httpStatusCode, requestId, attempts } = $metadata ?? {}
  return Object.assign(cause, {
    ...(typeof code === 'string' ? { code } : {}),
    ...($metadata === undefined ? {} : { $metadata: { httpStatusCode, requestId, attempts } }),
  })
}

function redacted(message: string): string {
  return String(message)
    .replace(/\/\/[^\s/@]*@/g, '//…@')
    .replace(/(security-token|credential|signature|authorization)(["']?\s*[:=]\s*)[^\s,&]+/gi, '$1$2…')
    .replace(/\b(AKIA|ASIA)[A-Z0-9]{8,}/g, '…')
}
