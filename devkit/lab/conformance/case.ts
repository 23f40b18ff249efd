import type { Subject } from './subject.ts'

/** One sentence of the contract (or, with `open`, one question that it leaves open), and how to test a server for it. */
export type Case = {
  /** `operation/what`; docs/contract.md points here. */
  name: string
  /** The contract's sentence in our words, or the open question. */
  about: string
  open?: true
  /** Resolves with what the server did. Throws Differs or NotTried. */
  ask(subject: Subject): Promise<string>
}
