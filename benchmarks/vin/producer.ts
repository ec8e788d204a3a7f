/**
 * A producer in a process of its own.
 *
 * @module
 */

import type { Address } from '../backends/backend.ts'
import { storageAt } from '../backends/storage-at.ts'
import { isChild, serve, spawned } from '../run/child.ts'
import { type Upload, upload } from './rows.ts'
import { type Uploader, type UploaderName, uploaders } from './uploaders.ts'

interface Open {
  readonly system: UploaderName
  readonly address: Address
  readonly baseUrl: string
}

interface Question {
  readonly open?: Open
  readonly upload?: Upload
}

export interface Producer {
  /** Uploads the file; answers how many rows were decoded. */
  upload(file: Upload): Promise<number>
  close(): Promise<void>
}

export async function producerElsewhere(open: Open): Promise<Producer> {
  const child = spawned(import.meta.url)
  await child.ask({ open } satisfies Question)
  return {
    upload: (file) => child.ask({ upload: file } satisfies Question, 300_000) as Promise<number>,
    close: async () => {
      await child.ask({} satisfies Question).catch(() => {})
      await child.end()
    },
  }
}

if (isChild(import.meta.url)) {
  let uploader: Uploader | undefined
  serve(async (question) => {
    const { open, upload: file } = question as Question
    if (open !== undefined) {
      const redisUrl = open.address.kind === 'redis' ? open.address.url : null
      const place = { baseUrl: open.baseUrl, storage: () => storageAt(open.address), redisUrl }
      uploader = await uploaders[open.system](place)
      return null
    }
    if (file !== undefined) return uploader?.upload(upload(file))
    await uploader?.close()
    return null
  })
}
