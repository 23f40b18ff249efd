import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** How much Node's parser gets in one turn of the event loop. */
const SLICE = 1_024
const END_OF_HEAD = Buffer.from('\r\n\r\n')

/**
 * Makes a server take its requests from `HttpConnection`. With `closesOnRefusal`, the connection ends after any
 * answer that is not a success. Call it before the server listens.
 */
export function oneRequestAtATime(server: Server, closesOnRefusal: boolean): void {
  const [parse] = server.rawListeners('connection')
  const [answer] = server.rawListeners('request')
  server.removeAllListeners('connection').removeAllListeners('request')
  server.on('checkExpectation', (_request, response) => {
    response.writeHead(417, { connection: 'close' }).end()
  })
  server.on('connection', (socket) => parse?.call(server, new HttpConnection(socket)))
  server.on('request', (request, response) => {
    const connection: unknown = request.socket
    if (!(connection instanceof HttpConnection) || !connection.begins(request, response)) return
    if (closesOnRefusal) closeOnRefusal(response)
    answer?.call(server, request, response)
  })
}

function closeOnRefusal(response: ServerResponse): void {
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse
  response.writeHead = (status: number, ...rest: unknown[]) => {
    if (status >= 300) response.setHeader('connection', 'close')
    return writeHead.call(response, status, ...rest)
  }
}

/**
 * A connection that gives an HTTP server one request at a time: the next comes once the server has answered the
 * last. In one turn of the event loop it passes on at most one head, or one slice of a body. Node on its own parses
 * all it has read (up to 64 KB and a thousand requests) before it looks at anything else, and starts to answer each
 * of them: a few hundred connections that send such reads stop the process for a minute. Here, whatever follows a
 * request waits unparsed, and the connection reads no more meanwhile. Requests hidden in the last slice of a body
 * end their connection.
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

  /** Ask this of each request before anything else: whether the server may answer it. */
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

  /** Outside of `_read`, `push` parses a slice before it returns. */
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

  /** Cuts after the end of a head, never inside it: bytes that may be the beginning of a head wait for the rest. */
  #sliceLength(): number {
    const { length } = this.#unread
    if (this.#inHand || this.#ended) return Math.min(length, SLICE)
    const end = this.#unread.subarray(0, SLICE + END_OF_HEAD.length).indexOf(END_OF_HEAD)
    if (end >= 0) return end + END_OF_HEAD.length
    return Math.min(length - (END_OF_HEAD.length - 1), SLICE)
  }

  override _read(): void {
    // The parser asks for slices when it is ready for them.
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

  /** Like a net.Socket's: closes both ways once the last answer has left. */
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
