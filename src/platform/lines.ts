import fs from 'node:fs'

/** How many bytes may wait while nothing can be written; later lines are dropped. */
const MOST_WAITING = 1024 * 1024
const TRY_AGAIN_MS = 50
/** How long a process that ends waits to write what is left. */
const GOODBYE_MS = 2_000
const GLANCE_MS = 5

const all: Lines[] = []
process.on('exit', () => {
  for (const lines of all) lines.flushSync()
})

/**
 * Writes lines to stdout or stderr in the background. Lines that it cannot write (the disk is full, nobody reads
 * the pipe) wait for another try, and block neither the process nor its end. pino's own destination (sonic-boom 5)
 * tries for ever when the process ends, and a full disk ends it for good.
 */
export class Lines {
  readonly #fd: 1 | 2
  readonly #onDropped: (lines: number) => void
  #waiting: Buffer[] = []
  #bytes = 0
  #dropped = 0
  #isWriting = false

  /** `onDropped`: called once there is room again. */
  constructor(fd: 1 | 2, onDropped: (lines: number) => void) {
    this.#fd = fd
    this.#onDropped = onDropped
    all.push(this)
  }

  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#bytes + bytes.length > MOST_WAITING) {
      this.#dropped++
      return
    }
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    this.#goOn()
  }

  /** Writes all that waits, or as much as it can in a moment. */
  flushSync(): void {
    for (const until = performance.now() + GOODBYE_MS; this.#bytes > 0 && performance.now() < until; ) {
      const some = this.#take()
      try {
        this.#putBack(some.subarray(fs.writeSync(this.#fd, some)))
      } catch (error) {
        if (isGone(error)) return
        this.#putBack(some)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, GLANCE_MS)
      }
    }
  }

  #goOn(): void {
    if (this.#isWriting || this.#bytes === 0) return
    this.#isWriting = true
    const some = this.#take()
    fs.write(this.#fd, some, (error, written = 0) => {
      if (!isGone(error)) this.#putBack(some.subarray(error ? 0 : written))
      if (error) setTimeout(() => this.#again(), TRY_AGAIN_MS).unref()
      else this.#again()
    })
  }

  #again(): void {
    this.#isWriting = false
    this.#goOn()
    if (this.#isWriting || this.#dropped === 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.#onDropped(dropped)
  }

  #take(): Buffer {
    const some = Buffer.concat(this.#waiting)
    this.#waiting = []
    this.#bytes = 0
    return some
  }

  #putBack(some: Buffer): void {
    if (some.length === 0) return
    this.#waiting.unshift(some)
    this.#bytes += some.length
  }
}

/** Nobody will ever read it. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EPIPE'
