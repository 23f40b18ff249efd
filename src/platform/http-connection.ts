import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** What Node's parser gets at once: of the shortest requests, twenty. */
const SLICE = 512
const END_OF_HEAD = Buffer.from('\r\n\r\n')

/** Has a server take its requests as `HttpConnection` hands them out. To be called before it listens. */
export function oneRequestAtATime(server: Server): void {
  const [parse] = server.rawListeners('connection')
  const [answer] = server.rawListeners('request')
  server.removeAllListeners('connection').removeAllListeners('request')
  server.on('connection', (socket) => parse?.call(server, new HttpConnection(socket)))
  server.on('request', (request, response) => {
    const connection: unknown = request.socket
    if (connection instanceof HttpConnection && connection.begins(request, response))
      answer?.call(server, request, response)
  })
}

/**
 * A connection of which an HTTP server is given one request, and the next once that one is answered, in a later turn of the
 * loop. Node by itself parses all that it read, which is up to 64 KB and a thousand requests, before it looks at anything
 * else, and starts to answer each of them: a few hundred connections that send such reads stop the process for a minute. Here
 * what is behind a request waits unparsed, and nothing more is read meanwhile. A request that comes into a parser before the
 * former is answered all the same, behind a body, ends its connection.
 */
class HttpConnection extends Duplex {
  readonly #socket: Socket
  #unread: Buffer = Buffer.alloc(0)
  #inHand: IncomingMessage | null = null
  #ended = false

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
      setImmediate(() => this.#feed())
    })
    return true
  }

  /** Each slice is parsed before the next one is looked at: pushed outside of `_read`, it is emitted at once. */
  #feed(): void {
    while (this.readableFlowing && this.#unread.length > 0 && !this.#inHand?.complete) {
      const slice = this.#unread.subarray(0, SLICE)
      const end = this.#inHand === null ? slice.indexOf(END_OF_HEAD) : -1
      const taken = end < 0 ? slice : slice.subarray(0, end + END_OF_HEAD.length)
      this.#unread = this.#unread.subarray(taken.length)
      this.push(taken)
    }
    if (this.destroyed || this.#unread.length > 0) return
    if (this.#ended) this.push(null)
    else this.#socket.resume()
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

  /** As of a net.Socket, which closes both ways once the last answer has left. */
  destroySoon(): void {
    this.end(() => this.destroy())
  }

  setTimeout(ms: number): this {
    this.#socket.setTimeout(ms)
    return this
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }
}
