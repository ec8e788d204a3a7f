import t from 'tap'
import { AtEntry, AtQueue, before } from '../../storages/memory/at-queue.ts'
import { Seeded } from '../support/seeded.ts'

class Item extends AtEntry<Item> {
  readonly name: number
  constructor(name: number) {
    super()
    this.name = name
  }
}

t.test('at random against a sorted array: the first is always the first, whatever was added or removed', async (t) => {
  const seeded = new Seeded()
  for (let run = 0; run < 40; run++) {
    const queue = new AtQueue<Item>()
    const sorted: Item[] = []
    // How times arrive: in order, nearly so, in reverse, or all over the place, with many equal ones.
    const shape = run % 4
    let order = 0
    for (let step = 0; step < 1_500; step++) {
      const at =
        shape === 0
          ? step
          : shape === 1
            ? step + seeded.below(20)
            : shape === 2
              ? 10_000 - step + seeded.below(3)
              : seeded.below(50)
      if (sorted.length === 0 || seeded.chance(0.55)) {
        const item = new Item(step)
        queue.add(item, at, order++, seeded.chance(0.7))
        sorted.push(item)
        sorted.sort((a, b) => (before(a, b) ? -1 : 1))
      } else if (seeded.chance(0.6)) {
        const first = queue.peek()!
        queue.remove(first)
        if (first !== sorted.shift()) return t.fail(`not the first one: seed ${seeded.seed}, run ${run}, step ${step}`)
      } else {
        const [any] = sorted.splice(seeded.below(sorted.length), 1)
        queue.remove(any!)
        if (seeded.chance(0.2)) queue.remove(any!)
      }
      if (queue.size !== sorted.length || queue.peek() !== (sorted[0] ?? null)) {
        return t.fail(`differs: seed ${seeded.seed}, run ${run}, step ${step}`)
      }
    }
    for (const item of sorted) {
      if (queue.peek() !== item) return t.fail(`differs when emptied: seed ${seeded.seed}, run ${run}`)
      queue.remove(item)
    }
    t.equal(queue.peek(), null)
    t.equal(queue.size, 0)
  }
})

t.test('a removed entry keeps nothing alive: its links are gone', async (t) => {
  const queue = new AtQueue<Item>()
  const [a, b, c] = [new Item(1), new Item(2), new Item(3)]
  for (const [n, item] of [a, b, c].entries()) queue.add(item, n, n, true)
  queue.remove(b)
  t.equal(b.prev, null)
  t.equal(b.next, null)
  t.equal(a.next, c)
  t.equal(c.prev, a)
  queue.add(b, 0, 9, false)
  t.equal(queue.peek(), a)
  queue.remove(a)
  t.equal(queue.peek(), b)
})

t.test('one that is far ahead does not send all that come before it to the heap', async (t) => {
  const queue = new AtQueue<Item>()
  queue.add(new Item(0), 1_000_000, 0, false)
  const items = Array.from({ length: 100 }, (_, n) => new Item(n))
  for (const [n, item] of items.entries()) queue.add(item, n, n + 1, true)
  t.ok(
    items.every(({ slot }) => slot < 0),
    'they are in the list',
  )
  for (const item of items) {
    t.equal(queue.peek(), item)
    queue.remove(item)
  }
})
