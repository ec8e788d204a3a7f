import t from 'tap'
import type { Storage } from '../../src/storage.ts'
import type { CreatedStorage } from '../../storages/conformance/index.ts'
import type { FileStorage } from '../../storages/file/index.ts'
import { runConformance } from '../conformance/run.ts'
import { Processes } from './support/spread.ts'
import { tempFolder } from './support/temp.ts'

t.test('File, real time, each call in the next of three processes', { timeout: 300_000 }, async (t) => {
  const processes = Processes.start(3)
  t.teardown(() => processes.end())
  const options = {
    create: async (): Promise<CreatedStorage> => {
      const { path, remove } = tempFolder()
      return {
        storage: processes.storage({ basePath: path, durability: 'os', compactionSlackBytes: 65_536 }),
        cleanup: remove,
      }
    },
    createShared: async (storage: Storage) => {
      const { basePath } = storage as unknown as FileStorage
      return processes.storage({ basePath, durability: 'os' })
    },
    random: { runs: 4, commands: 200 },
  }
  const summary = runConformance(t, options)
  t.ok(summary.cases.length > 100)
})
