import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** What Node's parser gets in one turn of the loop. */
const SLICE = 1_024
const END_OF_HEAD = Buffer.from('\r\n\r\n')

/**
 * Has a server take its requests as `HttpConnection` hands them out. `mostConnections`: it may have so many, so a connection ends
 * with an answer that is no success, and with any answer while more than half of them are open. To be called before it listens.
 */
export function oneRequestAtATime(server: Server, mostConnections: number | undefined): void {
  let open = 0
  const [parse] = server.rawListeners('connection')
  const [answer] = server.rawListeners('request')
  server.removeAllListeners('connection').removeAllListeners('request')
  server.on('checkExpectation', (_request, response) => {
    response.writeHead(417, { connection: 'close' }).end()
  })
  server.on('connection', (socket) => {
    open++
    socket.once('close', () => open--)
    parse?.call(server, new HttpConnection(socket))
  })
  server.on('request', (request, response) => {
    const connection: unknown = request.socket
    if (!(connection instanceof HttpConnection) || !connection.begins(request, response)) return
    if (mostConnections !== undefined)
      closeWith(response, (status) => status >= 300 || open > mostConnections / 2)
    answer?.call(server, request, response)
  })
}

/** Has the connection end with the answer whose status `isLast` says so of. */
function closeWith(response: ServerResponse, isLast: (status: number) => boolean): void {
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse
  response.writeHead = (status: number, ...rest: unknown[]) => {
    if (isLast(status)) response.setHeader('connection', 'close')
    return writeHead.call(response, status, ...rest)
  }
}

/**
 * A connection of which an HTTP server is given one request, and the next once that one is answered; in a turn of the event
 * loop no more than the head of one, or a slice of its body. Node by itself parses all that it read, which is up to 64 KB and
 * a thousand requests, before it looks at anything else, and starts to answer each of them: a few hundred connections that
 * send such reads stop the process for a minute. Here what is behind a request waits unparsed, and nothing more is read
 * meanwhile. Requests that are hidden in the last slice of a body end their connection.
 */
class HttpConnection extends Duplex {
  readonly #socket: Socket
  #unread: Buffer = Buffer.alloc(0)
  #inHand: IncomingMessage | null = null
  #ended = false
  #nextTurn: NodeJS.Immediate | undefined

  constructor(socket: Socket) {
    super()
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      socket.pause()
      this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes])
      this.#feed()
    })
    socket.on('end', () => {
      this.#ended = true
      this.#feed()
    })
    socket.on('timeout', () => this.emit('timeout'))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
    this.on('resume', () => this.#feed())
  }

  /** To be asked of each request before anything else is done with it: whether it may be answered. */
  begins(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#inHand !== null) {
      this.destroy()
      return false
    }
    this.#inHand = request
    response.once('close', () => {
      this.#inHand = null
      this.#feedLater()
    })
    return true
  }

  /** Pushed outside of `_read`, a slice is parsed before `push` returns. */
  #feed(): void {
    if (this.#nextTurn || this.destroyed || !this.readableFlowing) return
    if (this.#inHand?.complete && this.#unread.length > 0) return
    const length = this.#inHand?.complete ? 0 : this.#sliceLength()
    if (length > 0) {
      const slice = this.#unread.subarray(0, length)
      this.#unread = this.#unread.subarray(length)
      this.#feedLater()
      this.push(slice)
    } else if (this.#ended) {
      this.push(null)
    } else {
      this.#socket.resume()
    }
  }

  #feedLater(): void {
    this.#nextTurn ??= setImmediate(() => {
      this.#nextTurn = undefined
      this.#feed()
    })
  }

  /** A head is cut behind its end, and nowhere within that: whatever may be the beginning of it waits for the rest. */
  #sliceLength(): number {
    const { length } = this.#unread
    if (this.#inHand || this.#ended) return Math.min(length, SLICE)
    const end = this.#unread.subarray(0, SLICE + END_OF_HEAD.length).indexOf(END_OF_HEAD)
    if (end >= 0) return end + END_OF_HEAD.length
    return Math.min(length - (END_OF_HEAD.length - 1), SLICE)
  }

  override _read(): void {
    // Slices are pushed as the parser is ready for them.
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done)
  }

  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.cork()
    const last = chunks.pop()
    for (const { chunk, encoding } of chunks) this.#socket.write(chunk, encoding)
    if (last) this.#socket.write(last.chunk, last.encoding, done)
    this.#socket.uncork()
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  resetAndDestroy(): this {
    this.#socket.resetAndDestroy()
    return this
  }

  /** As of a net.Socket, which closes both ways once the last answer has left. */
  destroySoon(): void {
    this.end(() => this.destroy())
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    if (onTimeout) this.once('timeout', onTimeout)
    this.#socket.setTimeout(ms)
    return this
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }
}
