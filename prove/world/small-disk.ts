import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'

const CHUNK = Buffer.alloc(64 * 1024)

/** A separate filesystem that can be filled to the last byte, and emptied again. */
export class SmallDisk {
  readonly dir: string
  readonly #filler: string

  private constructor(dir: string) {
    this.dir = dir
    this.#filler = path.join(dir, 'filler')
  }

  /** Mounts one of this many MB in memory; null if this process may not mount. */
  static mount(dir: string, megabytes: number): SmallDisk | null {
    mkdirSync(dir, { recursive: true })
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'payoutd', dir], {
        stdio: 'pipe',
      })
    } catch {
      return null
    }
    return new SmallDisk(dir)
  }

  fill(): void {
    const file = openSync(this.#filler, 'a')
    try {
      for (;;) writeSync(file, CHUNK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }

  empty(): void {
    rmSync(this.#filler, { force: true })
  }

  unmount(): void {
    execFileSync('umount', [this.dir], { stdio: 'pipe' })
  }
}
