import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

const OLDEST_NODE = 20
const OLDEST_JAVA = 17

/** How each missing program is got; the versions behind a name are the distribution's. */
const PROGRAMS = {
  node: {
    name: `Node ${OLDEST_NODE} or later`,
    apt: 'nodejs',
    dnf: 'nodejs',
    brew: 'node',
  },
  npm: { name: 'npm', apt: 'npm', dnf: 'nodejs-npm', brew: 'node' },
  java: {
    name: `Java ${OLDEST_JAVA} or later (on Ubuntu 22.04 the package is openjdk-17-jre-headless)`,
    apt: 'default-jre-headless',
    dnf: 'java-latest-openjdk-headless',
    brew: 'temurin',
  },
  maven: { name: 'Maven', apt: 'maven', dnf: 'maven', brew: 'maven' },
}

/** Ends this process with instructions when its Node is too old, or the system is one without a shell. */
export function requireNode() {
  if (process.platform === 'win32') fail('payoutd runs on Linux and macOS; on Windows use it inside WSL.')
  if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
    demand([{ ...PROGRAMS.node, found: process.versions.node }])
  }
}

/** Ends this process with instructions when one of the programs is missing or too old. */
export function requireProgram(names) {
  const found = { npm: () => onPath('npm'), java: javaFound, maven: () => onPath('mvn') }
  const wanting = [...new Set(names)].map((name) => ({ ...PROGRAMS[name], ...found[name]() }))
  demand(wanting.filter((program) => !program.good))
}

function onPath(program) {
  const folders = (process.env.PATH ?? '').split(path.delimiter)
  return { good: folders.some((folder) => existsSync(path.join(folder, program))) }
}

function javaFound() {
  const { status, stderr } = spawnSync(javaProgram(), ['-version'], { encoding: 'utf8' })
  // `openjdk version "17.0.15"`, and `"1.8.0_412"` in the old days. macOS has a `java` that is only a notice.
  const version = status === 0 ? /version "([^"]+)"/.exec(stderr)?.[1] : undefined
  if (Number.parseInt(version ?? '0', 10) >= OLDEST_JAVA) return { good: true }
  const home = process.env.JAVA_HOME
  return { good: false, found: home ? `${version ?? 'nothing'} in JAVA_HOME, ${home}` : version }
}

/** The same Java that the development servers are started with. */
export function javaProgram() {
  return process.env.JAVA_HOME ? `${process.env.JAVA_HOME}/bin/java` : 'java'
}

function demand(programs) {
  if (programs.length === 0) return
  const all = (manager) => [...new Set(programs.map((program) => program[manager]))].join(' ')
  const list = programs.map(({ name, found }) => `  ${name}${found ? `; found: ${found}` : ''}`)
  fail(
    [
      'payoutd needs what this machine does not have:',
      ...list,
      '',
      'Get it with',
      `  Debian, Ubuntu   sudo apt-get install ${all('apt')}`,
      `  Fedora           sudo dnf install ${all('dnf')}`,
      `  macOS            brew install ${all('brew')}`,
      'or in any other way, and start again.',
    ].join('\n'),
  )
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
