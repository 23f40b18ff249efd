// @ts-expect-error: inside KafkaJS, not part of its types
import Decoder from 'kafkajs/src/protocol/decoder.js'
// @ts-expect-error: inside KafkaJS, not part of its types
import Encoder from 'kafkajs/src/protocol/encoder.js'

/** KafkaJS's own reader, as far as payoutd uses it. */
export type Reader = {
  buffer: Buffer
  offset: number
  readInt16(): number
  readInt32(): number
  readInt64(): bigint
  readString(): string
  readBoolean(): boolean
  readUVarIntString(): string | null
  readUVarIntArray<Item>(read: (from: Reader) => Item): Item[]
  readTaggedFields(): void
  forward(bytes: number): void
}
export type Writer = {
  writeInt32(value: number): Writer
  writeInt64(value: string): Writer
  writeString(value: string): Writer
  writeBoolean(value: boolean): Writer
  writeUVarInt(value: number): Writer
  writeUVarIntString(value: string): Writer
}

export type Broker = {
  versions: Record<number, { maxVersion: number } | undefined>
  connectionPool: { send<Answer>(protocolRequest: object): Promise<Answer> }
}

/** A request that KafkaJS 2.2.4 does not support, or not in this version. */
export type Request<Answer> = {
  apiKey: number
  apiVersion: number
  apiName: string
  write: (to: Writer) => Writer
  read: (from: Reader) => Answer
}

/** Sends a request in the form of KafkaJS's own. Null: this Kafka does not support that version. */
export async function ask<Answer>(
  { versions, connectionPool }: Broker,
  { apiKey, apiVersion, apiName, write, read }: Request<Answer>,
): Promise<Answer | null> {
  if ((versions[apiKey]?.maxVersion ?? 0) < apiVersion) return null
  return connectionPool.send<Answer>({
    request: { apiKey, apiVersion, apiName, encode: async () => write(new Encoder()) },
    response: {
      decode: async (bytes: Buffer): Promise<Reader> => new Decoder(bytes),
      parse: async (reader: Reader) => read(reader),
    },
  })
}
