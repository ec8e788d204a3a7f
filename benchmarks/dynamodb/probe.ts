import * as client from '@aws-sdk/client-dynamodb'
import * as lib from '@aws-sdk/lib-dynamodb'
import { Entity, Table, PutItemCommand, UpdateItemCommand, $remove, item, string, number, any, anyOf, binary } from 'dynamodb-toolbox'
import { HttpResponse } from '@smithy/core/protocols'
import { Readable } from 'node:stream'
const handler = { metadata: { handlerProtocol: 'http/1.1' }, handle: async () => ({ response: new (HttpResponse as any)({ statusCode: 200, headers: {'content-type':'application/x-amz-json-1.0'}, body: Readable.from([Buffer.from('{}')]) }) }), destroy(){}, updateHttpClientConfig(){}, httpHandlerConfigs(){return{}} }
const c = new client.DynamoDBClient({ region:'x', endpoint:'http://127.0.0.1:1', credentials:{accessKeyId:'a',secretAccessKey:'b'}, requestHandler: handler as any })
const doc = lib.DynamoDBDocumentClient.from(c, {marshallOptions:{removeUndefinedValues:true}})
const table = new Table({ documentClient: doc, name:'t', partitionKey:{name:'pk',type:'string'}, indexes:{due:{type:'global',partitionKey:{name:'shard',type:'string'},sortKey:{name:'due',type:'number'}}}, entityAttributeSavedAs:'_et'})
const E = new Entity({ name:'job', table, entityAttribute:false, timestamps:false, schema: item({ pk:string().key(), w:string(), v:number(), s:string(), n:string(), d:string().optional(), c:number(), m:number(), k:number(), K:number().optional(), a:number().optional(), t:number(), g:string().optional(), l:number().optional(), p:anyOf(string(),binary()).optional(), r:anyOf(string(),binary()).optional(), e:anyOf(string(),binary()).optional(), x:number().optional(), z:number().optional(), shard:string().optional(), due:number().optional(), ttl:number().optional() }) })
const rec = { pk:'askonce#q#j#hello world', w:'abcdefghijklmno1', v:1, s:'q', n:'abcdefghijklmnopqrst', d:'x'.repeat(43), c:1700000000000, m:3, k:3600000, t:1700000000000, p:'x'.repeat(500), shard:'askonce#q#0', due:1700000000000 }
const upd = { pk:rec.pk, w:'sdfsdf', s:'p', a:1, t:1700000000000, g:'asdasdasd', due:1700000000000, e:$remove() }
const N=3000
async function time(name:string, f:()=>any){ for(let i=0;i<500;i++) await f(); const u=process.cpuUsage(); for(let i=0;i<N;i++) await f(); const d=process.cpuUsage(u); console.log(name, ((d.user+d.system)/N).toFixed(1),'us cpu/call') }
const putParams = () => E.build(PutItemCommand).item(rec as any).options({condition:{attr:'w',eq:'abc'} as any, returnValuesOnConditionFalse:'ALL_OLD'}).params()
const updParams = () => E.build(UpdateItemCommand).item(upd as any).options({condition:{attr:'w',eq:'abc'} as any, returnValues:'ALL_NEW', returnValuesOnConditionFalse:'ALL_OLD'}).params()
console.log(JSON.stringify(putParams()), JSON.stringify(updParams()))
await time('toolbox params put', putParams)
await time('toolbox params update', updParams)
const pp = putParams() as any, up = updParams() as any
await time('doc client put', () => doc.send(new lib.PutCommand(pp)))
await time('doc client update', () => doc.send(new lib.UpdateCommand(up)))
const av=(o:any)=>{const r:any={};for(const k in o){const v=o[k]; r[k]=typeof v==='string'?{S:v}:{N:String(v)}} return r}
await time('bare put', () => c.send(new client.PutItemCommand({...pp, Item: av(pp.Item), ExpressionAttributeValues: av(pp.ExpressionAttributeValues)})))
await time('bare update', () => c.send(new client.UpdateItemCommand({...up, Key: av(up.Key), ExpressionAttributeValues: av(up.ExpressionAttributeValues)})))
await time('toolbox put send', () => E.build(PutItemCommand).item(rec as any).options({condition:{attr:'w',eq:'abc'} as any, returnValuesOnConditionFalse:'ALL_OLD'}).send())
