import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../src/config/config.ts'

interface Service {
  command: string[] | null
  container_name?: string
  environment?: Record<string, string>
  healthcheck?: { disable?: boolean; test?: string[] }
  ports?: { host_ip?: string; published?: string }[]
  restart?: string
}

const FILE = path.resolve(import.meta.dirname, '..', 'docker-compose.yml')
const COMMANDS = ['migrate', 'payroll']

/** Asks Compose itself, with only these variables set; needs no engine. */
function compose(args: string[], variables: Record<string, string> = {}) {
  const { PATH, HOME, DOCKER_CONFIG } = process.env
  return spawnSync('docker', ['compose', '--env-file', '/dev/null', '-f', FILE, ...args], {
    encoding: 'utf8',
    env: { PATH, HOME, ...(DOCKER_CONFIG && { DOCKER_CONFIG }), ...variables },
  })
}

function servicesWith(variables: Record<string, string> = {}): Record<string, Service> {
  const { status, stdout, stderr } = compose(['config', '--format', 'json'], variables)
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout).services
}

const skip = compose(['version']).status === 0 ? false : 'docker compose is not installed'

test('compose sets payoutd up without any variable, and the sandbox knows its merchant', { skip }, () => {
  const services = servicesWith()
  for (const name of ['payoutd', ...COMMANDS]) {
    const [merchant, ...others] = readConfig(services[name]?.environment ?? {}).merchants.values()
    assert.equal(others.length, 0)
    assert.equal(merchant?.baseUrl, 'http://sandbox:8790')
    assert.ok(services.sandbox?.command?.includes(`--merchant=${merchant.mchId}:${merchant.key}`))
  }
})

test('compose lets nobody in from outside the machine', { skip }, () => {
  const published = Object.values(servicesWith()).flatMap(({ ports }) => ports ?? [])
  assert.ok(published.length > 0)
  for (const port of published) assert.equal(port.host_ip, '127.0.0.1', JSON.stringify(port))
})

test('every compose server is watched and restarts; commands run once, and `up --wait` sees that they did', {
  skip,
}, () => {
  for (const [name, { healthcheck, restart }] of Object.entries(servicesWith())) {
    if (COMMANDS.includes(name)) assert.equal(restart, 'no', name)
    if (name !== 'migrate') {
      // A service that ends, and that no other waits for, makes `up --wait` fail.
      assert.ok(name === 'payoutd' || healthcheck?.test, `${name} has no health check`)
    }
    if (!COMMANDS.includes(name)) {
      assert.equal(restart, 'unless-stopped', name)
      // payoutd's own health check is in the image.
      if (name === 'payoutd') assert.equal(healthcheck, undefined)
    }
  }
})

test('payoutd in compose can have replicas', { skip }, () => {
  const { payoutd } = servicesWith()
  assert.equal(payoutd?.container_name, undefined)
  for (const { published } of payoutd?.ports ?? []) assert.match(published ?? '', /^\d+-\d+$/)
})

test('a variable can replace every development secret of compose', { skip }, () => {
  const key = Buffer.alloc(32, 7).toString('base64')
  const replaced = JSON.stringify(
    servicesWith({
      POSTGRES_PASSWORD: 'replaced',
      GATEWAY_KEY: 'replaced',
      ENCRYPTION_KEYS: `1:${key}`,
      FINGERPRINT_KEY: key,
    }),
  )
  for (const secret of [
    'development-only',
    Buffer.from('development-only').toString('base64').slice(0, 20),
  ]) {
    assert.ok(JSON.stringify(servicesWith()).includes(secret))
    assert.ok(!replaced.includes(secret))
  }
})
