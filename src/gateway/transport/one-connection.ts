import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'

/** Follows one request, and is told which connection it uses. */
export interface Conversation extends Dispatcher.DispatchHandler {
  on(connection: OneConnection): void
}

/**
 * One kept-alive connection of a pool. Whoever uses it can end it as soon as an answer is complete, before another request is
 * written: bytes that come later then reach nobody.
 */
export class OneConnection extends Client {
  #socket: Socket | undefined

  /** `options` as a Pool passes them, which has made its `connect` a function. */
  constructor(origin: URL, { connect, ...options }: Client.Options & { connect: buildConnector.connector }) {
    super(origin, {
      ...options,
      connect: (to, done) =>
        connect(to, (...opened) => {
          const [, socket] = opened
          this.#socket = socket ?? undefined
          done(...opened)
        }),
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Conversation): boolean {
    handler.on(this)
    return super.dispatch(options, handler)
  }

  end(): void {
    this.#socket?.destroy()
  }
}
