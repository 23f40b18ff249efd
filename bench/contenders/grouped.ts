/**
 * Returns a function that hands single items to `exec` in groups: whatever comes within `waitMs` or while earlier groups are under
 * way, at most `most` at a time. Each call resolves with the result of its item's group, or rejects with its error.
 */
export function grouped<Item, Result>(
  exec: (items: Item[]) => Promise<Result>,
  { most, waitMs, atOnce }: { most: number; waitMs: number; atOnce: number },
): (item: Item) => Promise<Result> {
  type Waiting = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }
  const waiting: Waiting[] = []
  let timer: NodeJS.Timeout | undefined
  let underWay = 0

  function arm(): void {
    if (waiting.length >= most) flush()
    else timer ??= setTimeout(flush, waitMs)
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (waiting.length === 0 || underWay >= atOnce) return
    const group = waiting.splice(0, most)
    underWay++
    exec(group.map(({ item }) => item))
      .then((result) => {
        for (const { resolve } of group) resolve(result)
      })
      .catch((error: unknown) => {
        for (const { reject } of group) reject(error)
      })
      .finally(() => {
        underWay--
        if (waiting.length > 0) arm()
      })
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      arm()
    })
}
