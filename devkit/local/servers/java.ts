import { createHash } from 'node:crypto'
import { existsSync, realpathSync, statSync } from 'node:fs'
import { copyFile, mkdir, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { classArchives, fetched, type Layout } from './layout.ts'

/** `demo` starts fast and stays small; `bench` lets the JVM compile and Postgres cache. */
export type Tuning = 'demo' | 'bench'

/** A JVM and its class archive, which saves a second at each start after the first stop. */
export class Java {
  readonly file = javaProgram()
  readonly #archive: string
  readonly #flags: string[]
  /** The stack's own path for an unfinished archive: other stacks may be at their first run, too. */
  readonly #unfinished: string

  constructor(name: 'kafka' | 'registry', layout: Layout, tuning: Tuning) {
    this.#unfinished = path.join(layout.dir, `${name}.jsa`)
    this.#archive = archiveOf(name, tuning, this.file)
    this.#flags =
      tuning === 'demo'
        ? ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']
        : ['-Xmx512m', '-XX:+UseSerialGC']
    // The directory on the command line identifies our processes.
    this.#flags.push(`-Dpayoutd.stack=${layout.dir}`)
  }

  /** The flags for a start now. The first run writes the archive when it ends. */
  async flags(): Promise<string[]> {
    await mkdir(path.dirname(this.#archive), { recursive: true })
    await rm(this.#unfinished, { force: true })
    const classes = existsSync(this.#archive)
      ? `-XX:SharedArchiveFile=${this.#archive}`
      : `-XX:ArchiveClassesAtExit=${this.#unfinished}`
    return [...this.#flags, classes, '-Xlog:disable', '-Xlog:all=error']
  }

  /** Call after an orderly end: only then is the archive whole. */
  async ended(): Promise<void> {
    if (!existsSync(this.#unfinished)) return
    const whole = `${this.#archive}.${process.pid}`
    await copyFile(this.#unfinished, whole)
    await rename(whole, this.#archive)
    await rm(this.#unfinished)
  }
}

/** Whether the JVMs of a small stack find what earlier ones saved. */
export const hasClassArchives = (): boolean =>
  (['kafka', 'registry'] as const).every((name) => existsSync(archiveOf(name, 'demo', javaProgram())))

const archiveOf = (name: 'kafka' | 'registry', tuning: Tuning, java: string): string =>
  path.join(classArchives, `${name}-${tuning}-${identityOf(java, path.join(fetched(name), 'pom.xml'))}.jsa`)

function javaProgram(): string {
  const home = process.env.JAVA_HOME
  const folders = home ? [path.join(home, 'bin')] : (process.env.PATH ?? '').split(path.delimiter)
  const found = folders.map((folder) => path.join(folder, 'java')).find((file) => existsSync(file))
  if (!found) throw new Error('Java was not found: install Java 17 or later, or set JAVA_HOME')
  return realpathSync(found)
}

/** An archive works only with the exact JVM and jars that wrote it. */
function identityOf(...files: string[]): string {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file} ${statSync(file).mtimeMs}\n`)
  return hash.digest('hex').slice(0, 12)
}
