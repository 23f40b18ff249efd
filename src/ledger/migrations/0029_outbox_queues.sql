-- Up Migration
-- No transaction

-- It waits for whoever works at that moment.
set lock_timeout = 0;

-- The outbox is a queue for each topic in each shard, so that what waits for one topic stands before no other's. An older
-- relay finds its way by this index too, only slower where much waits.
drop index concurrently if exists outbox_queues;
create index concurrently outbox_queues on outbox (shard, topic, position);
drop index concurrently if exists outbox_next;
reset lock_timeout;

-- Down Migration
create index outbox_next on outbox (shard, position);
drop index outbox_queues;
