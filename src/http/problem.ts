import type { FastifyReply } from 'fastify'

/** An error in the form of RFC 9457. `type` is a stable word for programs, `title` a sentence for people. */
export type Problem = {
  status: number
  type: string
  title: string
  /** More about this one case. */
  detail?: string
  [member: string]: unknown
}

/** Replies with a problem, which must not contain a secret. */
export const sendProblem = (reply: FastifyReply, { type, ...problem }: Problem): FastifyReply =>
  reply
    .code(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: `urn:payoutd:problem:${type}`, ...problem }))
