import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { javaProgram } from './requirements.mjs'
import { root } from './root.mjs'
import { run } from './run.mjs'

const dist = path.join(root, '.payoutd', 'dist')

/** Kafka's jars, and the checkpoint with which the development stack formats a broker without a JVM. */
export const kafka = fetched('kafka', async (folder, children) => {
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${folder}`]
  await run('Fetching Kafka (44 MB)', 'mvn', [...maven, ...goal], { cwd: folder, children })
  await formatOnce(folder, children)
})

/** The schema registry, unpacked. */
export const registry = fetched('registry', async (folder, children) => {
  const goal = ['dependency:unpack', `-DoutputDirectory=${folder}`]
  await run('Fetching Apicurio Registry (109 MB)', 'mvn', [...maven, ...goal], { cwd: folder, children })
  for (const waste of ['target', 'meta']) rmSync(path.join(folder, waste), { recursive: true, force: true })
})

const maven = ['-q', '-B']

/**
 * A server in `.payoutd/dist/NAME`, as `devkit/local/servers/NAME/pom.xml` asks for it. The folder holds the pom
 * that it was made from, and is moved to its place when it is whole.
 */
function fetched(name, fill) {
  const pom = path.join(root, 'devkit', 'local', 'servers', name, 'pom.xml')
  const place = path.join(dist, name)
  return {
    needs: ['java', 'maven'],
    done: () => {
      const made = path.join(place, 'pom.xml')
      return existsSync(made) && readFileSync(made).equals(readFileSync(pom))
    },
    run: async (children) => {
      sweep(name)
      const unfinished = path.join(dist, `${name}.unfinished`)
      mkdirSync(unfinished, { recursive: true })
      copyFileSync(pom, path.join(unfinished, 'pom.xml'))
      await fill(unfinished, children)
      if (existsSync(place)) renameSync(place, path.join(dist, `${name}.replaced`))
      renameSync(unfinished, place)
      sweep(name)
    },
  }
}

/** Removes what an interrupted set-up, or a replaced version, left. */
function sweep(name) {
  for (const end of ['unfinished', 'replaced']) {
    rmSync(path.join(dist, `${name}.${end}`), { recursive: true, force: true })
  }
}

/** The ports and the cluster named here leave no trace in the checkpoint; only the feature levels do. */
async function formatOnce(folder, children) {
  const formatted = path.join(folder, 'formatted')
  const settings = path.join(folder, 'format.properties')
  const lines = [
    'process.roles=broker,controller',
    'node.id=1',
    'controller.quorum.voters=1@127.0.0.1:9093',
    'controller.listener.names=CONTROLLER',
    'listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093',
    `log.dirs=${formatted}`,
  ]
  writeFileSync(settings, `${lines.join('\n')}\n`)
  const tool = ['-cp', path.join(folder, '*'), 'kafka.tools.StorageTool', 'format']
  const cluster = ['-t', '5L6g3nShT-eMCtK--X86sw', '-c', settings]
  await run('Formatting Kafka', javaProgram(), [...tool, ...cluster], { cwd: folder, children })
  rmSync(settings)
  for (const file of readdirSync(formatted)) {
    if (file !== 'bootstrap.checkpoint') rmSync(path.join(formatted, file))
  }
}
