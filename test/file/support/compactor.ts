/** A process that does nothing but compact a namespace, as often as it is told to. */

import path from 'node:path'
import { systemClock } from '../../../src/clock.ts'
import { Compaction } from '../../../storages/file/compaction.ts'
import { nodeFileSystem } from '../../../storages/file/file-system.ts'
import { Folder, folderName } from '../../../storages/file/folder.ts'
import { LogReplacedError } from '../../../storages/file/log-file.ts'
import { ReplicatedLog } from '../../../storages/file/replicated-log.ts'

const [basePath = '', namespace = '', times = '0'] = process.argv.slice(2)
const fs = nodeFileSystem
const folder = new Folder(fs, path.join(basePath, folderName(namespace)))
const warn = (code: string, message: string) => {
  console.error(code, message)
  process.exitCode = 1
}
let nonces = 0
const options = { fs, folder, warn, nonce: () => `compactor-${process.pid}-${nonces++}`, fsync: false }
const compaction = new Compaction({ fs, folder, clock: systemClock, warn, slackBytes: 0 })
let state = await ReplicatedLog.load(options)
let made = 0
for (let round = 0; round < Number(times); round++) {
  try {
    await state.catchUp()
    if (await compaction.begin(state)) made++
  } catch (error) {
    if (!(error instanceof LogReplacedError)) throw error
    state = await ReplicatedLog.load(options)
  }
}
console.log(made)
