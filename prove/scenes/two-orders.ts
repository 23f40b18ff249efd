import { setTimeout as delay } from 'node:timers/promises'
import {
  findOne,
  inWorld,
  ONE,
  PROMISED,
  type Scene,
  sendAgain,
  start,
  taken,
  untilState,
} from '../scenes.ts'
import { aboutOrder, callBack } from '../world/callback.ts'
import { MERCHANT_ID } from '../world/merchants.ts'
import { findNothing, setFaults } from '../world/sandbox-faults.ts'
import { MIX } from '../world/world.ts'

/** The order of a first apply fails, while a second apply, sent by a person, is paid under the same number. */
export const lateFailure: Scene = {
  name: 'a late "failed" for the first of two orders under one number',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', sandbox: { settleMs: 4_000 } }, async (world) => {
      await start(world, without)
      await findOne(world, bench)
      const [payoutId = ''] = await world.ask(1, [MIX['not taken, hangs once']], ONE)
      await untilState(world, payoutId, 'review')
      await sendAgain(world, payoutId)
      await taken(world, 3)
      const second = (await world.gateway.orders()).find((order) => order.status === 1)
      if (!second) throw new Error('the gateway has no second order under way')
      const failed = { status: '3', channelPayNo: '', errorMessage: 'account closed' }
      await callBack(world, { ...aboutOrder(second), agentpayOrderId: 'THE-FIRST-ONE', ...failed })
      world.mustEndAs('paid', [payoutId])
      await delay(1_000)
      return 1
    }),
}

/** The gateway does not accept the first apply of each, would pay a second one, and a person cancels them in between. */
export const cancelledInDoubt: Scene = {
  name: 'cancellations while it is unknown whether the gateway has the order, and it does not',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', dialect: PROMISED }, async (world) => {
      await start(world, without)
      await findOne(world, bench, ONE)
      const payoutIds = await world.ask(4, [MIX['not taken, hangs once']], ONE)
      for (const payoutId of payoutIds) await untilState(world, payoutId, 'unknown')
      await world.cancel(payoutIds.map((payoutId) => ({ merchantId: MERCHANT_ID, payoutId })))
      world.mustEndAs('review', payoutIds)
      return payoutIds.length
    }),
}

/**
 * The gateway reports each order once, in a status that its contract does not list, and then finds none of them for longer than
 * the grace.
 */
export const shownOnce: Scene = {
  name: 'the gateway reports orders in an unknown status, then does not find them for longer than the grace, and pays twice against its promise',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', dialect: PROMISED, sandbox: { settleMs: 9_000 } }, async (world) => {
      await start(world, without)
      await findOne(world, bench, ONE)
      await findNothing(world, { new: true })
      const payoutIds = await world.ask(4, [MIX['taken, never answered']], ONE)
      await taken(world, 6)
      for (const payoutId of payoutIds) await untilState(world, payoutId, 'unknown')
      for (const order of (await world.gateway.orders()).slice(-4))
        await callBack(world, { ...aboutOrder(order), status: '9' })
      await delay(6_000)
      await setFaults(world, [])
      return payoutIds.length
    }),
}

/**
 * The gateway takes an apply that is never answered, reports an order under a number that it gives to no order in its books, then
 * the one that it has, and then that the first one failed.
 */
export const otherOrderAlive: Scene = {
  name: 'the gateway reports two orders of a payout that was sent once, and that the first of them failed, at a gateway that pays twice',
  play: (bench, without) =>
    inWorld(bench, { review: 'any', dialect: PROMISED, sandbox: { settleMs: 9_000 } }, async (world) => {
      await start(world, without)
      await findOne(world, bench, ONE)
      const payoutIds = await world.ask(4, [MIX['taken, never answered']], ONE)
      await taken(world, 6)
      const orders = (await world.gateway.orders()).slice(-4)
      for (const [i, order] of orders.entries()) {
        const alive = { ...aboutOrder(order), status: '1' }
        const other = { ...alive, agentpayOrderId: `ANOTHER-${i}` }
        const failed = { ...other, status: '3', errorMessage: 'account closed' }
        for (const fields of [other, alive, failed]) await callBack(world, fields)
      }
      return payoutIds.length
    }),
}
