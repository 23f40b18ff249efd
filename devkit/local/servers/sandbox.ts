import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { type Layout, sandboxMain } from './layout.ts'
import { type Host, ServerProcess } from './processes/process.ts'
import { end, type Server, untilReady } from './server.ts'

export interface SandboxOptions {
  layout: Layout
  port: number
  merchant: { mchId: string; key: string }
}

const BALANCE_PAISE = 10_000_000_000_000n

/** The gateway's stand-in, with one merchant that can pay any payroll, on the loopback address only. */
export function sandbox({ layout, port, merchant }: SandboxOptions, host: Host): Server {
  const dataDir = path.join(layout.data, 'sandbox')
  return {
    start: async () => {
      await mkdir(dataDir, { recursive: true })
      const args = [
        ...[sandboxMain, '--host', '127.0.0.1', '--port', String(port)],
        ...['--state', path.join(dataDir, 'state.sqlite')],
        ...['--merchant', `${merchant.mchId}:${merchant.key}`, '--balance', String(BALANCE_PAISE)],
      ]
      const running = await ServerProcess.spawn(
        { file: process.execPath, args },
        path.join(layout.logs, 'sandbox.log'),
        'TERM',
        host,
      )
      await untilReady('sandbox', running, host.clock, () => running.said('sandbox ready'))
      return running
    },
    stop: async (running) => void (await end(running, 'SIGTERM')),
  }
}
