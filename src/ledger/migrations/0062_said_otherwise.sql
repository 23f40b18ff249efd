-- Up Migration
-- Older code: does not work

-- Of a payout that ended unpaid: what the gateway has said since but that it failed. 'alive': that its order is alive, which
-- it told before that it failed. 'open': what is kept as an anomaly that nobody has acknowledged; 'acknowledged': somebody
-- has. Null: nothing else. Older code stores such a word without this, and the same payment would be sent once more.
alter table payouts add column said_otherwise text;
update compatibility set oldest = '0062_said_otherwise';

-- Down Migration
update compatibility set oldest = '0059_one_step';
alter table payouts drop column said_otherwise;
