import type { Subject } from './subject.ts'

/** One sentence of the contract, or with `open` one question that it leaves open, and how a server is asked. */
export type Case = {
  /** `operation/what`; docs/contract.md points here. */
  name: string
  /** What the contract says in our words; of an open question, what is asked. */
  about: string
  open?: true
  /** Resolves with what the server did. Throws Differs or NotTried. */
  ask(subject: Subject): Promise<string>
}
