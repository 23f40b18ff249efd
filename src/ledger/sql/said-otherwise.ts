import { ABOUT_FIELDS } from '../../domain/anomaly-details.ts'
import { IN_DOUBT } from '../../domain/payout/apply-evidence.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import { isEndedUnpaid } from './ended.ts'

/** For a row `a` of anomalies: the gateway reports anything but that the order failed. payoutd asks about ambiguous reports. */
export const saysOtherwise: Fragment = {
  fragment: `(
    a.source in ('APPLY', 'CALLBACK', 'QUERY') and a.kind not in ('${[...ABOUT_FIELDS, ...Object.values(IN_DOUBT).map(({ kind }) => kind)].join(`', '`)}')
    and a.detail not like '%(failed, %'
  )`,
}

/**
 * For a row `p` of payouts that ended unpaid. True: it may be paid after all, because the gateway has since reported anything
 * but that it failed and nobody has acknowledged that, or because payoutd has still to ask what a callback said. False: somebody
 * has acknowledged the report, which does not make the payout unpaid. Null: the gateway's last report is that it failed.
 */
export const saidOtherwise = `(
  case
    when not ${isEndedUnpaid} then null
    when exists (
      select from lost_callbacks l
      where l.merchant_id = p.merchant_id and l.kind = 'payout' and l.order_no = p.order_no) then true
    else p.said_otherwise <> 'acknowledged'
  end
)`

type Keys = { payouts: readonly { merchantId: string; payoutId: string }[] }

/** Stores on locked payouts that ended unpaid whether an anomaly that says otherwise is open or acknowledged. */
const keep = (which: string) => sql<Keys>`
  update payouts p set said_otherwise = case when said.is_open then 'open' else 'acknowledged' end
  from (
    select place, is_open
    from (
      select
        (select ctid from payouts
         where payouts.merchant_id = given.merchant_id and payouts.payout_id = given.payout_id) as place,
        (select bool_or(a.acknowledged_at is null) from anomalies a
         where a.merchant_id = given.merchant_id and a.payout_id = given.payout_id and ${saysOtherwise}) as is_open
      from ${{ rows: 'payouts', columns: { merchantId: 'text', payoutId: 'text' } }} given
    ) found
  ) said
  where p.ctid = said.place and ${{ fragment: isEndedUnpaid }} and ${{ fragment: which }}`

export const keepSaidOtherwise = keep('said.is_open is not null')
/** For use after an acknowledgement. The end itself acknowledged what the gateway reported before it. */
export const keepAcknowledged = keep(`p.said_otherwise = 'open' and not said.is_open`)
