import avro from 'avsc'

/** A decoded record: its full name, and its fields with every long as a number. */
export type AvroRecord = { name: string; value: Record<string, unknown> }

/**
 * Reads Avro in the Confluent wire format with the schema that each message names. It shares no code with payoutd's
 * encoding, so that a mistake there shows. A long beyond 2^53 throws.
 */
export class AvroReader {
  readonly #registryUrl: string
  readonly #headers: Record<string, string>
  readonly #types = new Map<number, Promise<avro.Type>>()

  constructor({ url, auth }: { url: string; auth?: { username: string; password: string } }) {
    this.#registryUrl = url.replace(/\/$/, '')
    const credentials = auth && Buffer.from(`${auth.username}:${auth.password}`).toString('base64')
    this.#headers = credentials ? { authorization: `Basic ${credentials}` } : {}
  }

  /** Throws if the registry does not answer, or the bytes do not fit their schema. */
  async read(message: Buffer): Promise<AvroRecord> {
    if (message[0] !== 0) throw new Error('a message is not in the Confluent wire format')
    const id = message.readInt32BE(1)
    const known = this.#types.get(id) ?? this.#fetch(id)
    this.#types.set(id, known)
    known.catch(() => this.#types.delete(id))
    const type = await known
    return { name: type.name ?? '', value: type.fromBuffer(message.subarray(5)) }
  }

  async #fetch(id: number): Promise<avro.Type> {
    const answer = await fetch(`${this.#registryUrl}/schemas/ids/${id}`, { headers: this.#headers })
    if (!answer.ok) throw new Error(`the registry does not give schema ${id}: HTTP ${answer.status}`)
    const { schema } = (await answer.json()) as { schema: string }
    return avro.Type.forSchema(JSON.parse(schema))
  }
}
