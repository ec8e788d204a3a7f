import t from 'tap'
import type { CreatedStorage } from '../../storages/conformance/index.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import type { FileStorageOptions } from '../../storages/file/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { runConformance } from '../conformance/run.ts'
import { tempFolder } from './support/temp.ts'

function options(settings: Omit<FileStorageOptions, 'basePath'>) {
  return {
    create: async (): Promise<CreatedStorage> => {
      const { path, remove } = tempFolder()
      return { storage: new FileStorage({ basePath: path, ...settings }), cleanup: remove }
    },
    createShared: async (storage: unknown) => {
      return new FileStorage({ basePath: (storage as FileStorage).basePath, ...settings })
    },
  }
}

t.test('File, virtual clock', async (t) => {
  const clock = new VirtualClock()
  runConformance(t, { ...options({ clock, durability: 'os' }), advance: (ms) => clock.advance(ms) })
})

t.test('File, virtual clock, fsync, compacted as often as can be', async (t) => {
  const clock = new VirtualClock()
  runConformance(t, {
    ...options({ clock, durability: 'fsync', compactionSlackBytes: 64 * 1024 }),
    advance: (ms) => clock.advance(ms),
  })
})

t.test('File, real time', async (t) => {
  runConformance(t, options({ durability: 'os' }))
})
