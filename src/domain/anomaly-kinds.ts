/** Every kind of anomaly, and what it says. The order is that of docs/reference/anomalies.md, which is made from it. */
export const ANOMALY_KINDS = {
  contradiction:
    'The gateway says otherwise about a payout or payin that has ended: failed for a paid one, paid or alive for a failed one, or paid for one whose money came back.',
  'amount-mismatch': 'The gateway names another amount, or none.',
  'currency-mismatch': 'The gateway names another currency for a payin.',
  'merchant-mismatch': 'A callback about a payin names another merchant number.',
  'order-mismatch': 'A report names an order number that is not this payout’s.',
  'order-id-mismatch':
    'The gateway names another order of its own than before, so it may have two for one payout or payin.',
  'utr-mismatch': 'The gateway names another UTR for a paid payout or payin.',
  'fee-mismatch': 'The gateway names another fee for a paid payout.',
  'fee-above-amount':
    'The fee is above the amount, and above ₹100. payoutd keeps it and estimates nothing by it.',
  'unreadable-fields': 'A report counts, but some of its fields cannot be read and are not stored.',
  'unlisted-status': 'The gateway uses a status that is not in the contract.',
  'payment-named': 'The gateway names a UTR or the time of a payment of a payin that it does not call paid.',
  'utr-of-two': 'A UTR belongs to two payouts, or to two payins.',
  'ambiguous-callback': 'The signed text of a callback can be read in more than one way.',
  'request-sent-back': 'The signed text of a callback is that of a request of payoutd.',
  'unknown-order': 'A signed callback is about an order that payoutd never sent.',
  'other-account': 'Another gateway account than the one that it was sent to reports it.',
  'never-sent':
    'The gateway has an order of a payout that the ledger never sent, so the ledger has lost something. The merchant is fenced.',
  'not-stored': 'The database refused what somebody said about it. payoutd asks again.',
  'lost-callback':
    'A callback about the order was lost, or nobody could ask about it, and since then the gateway has said that it has no such order.',
  tampered: 'A payout differs from what intake stored. payoutd does not send it.',
  'same-id-other-content':
    'A command with the id of an earlier one asks for something else. The first one counts.',
  'cancel-of-unknown-payout': 'A cancellation came before its payout. payoutd remembers it.',
  'commands-lost': 'Kafka lost commands that payoutd had not read.',
  'commands-replaced': 'The topic of commands, or a part of it, is another one than before.',
  'ledger-set-back': 'The database forgot commands that it had stored. The merchant is fenced.',
  'end-published': 'payoutd published an end that differs from what the recovered ledger has.',
  'published-and-gone': 'payoutd published a payout as under way that the recovered ledger does not have.',
} as const

export type AnomalyKind = keyof typeof ANOMALY_KINDS
