-- Up Migration
-- Older code: works

-- Which topics are the ledger's own: several installations may share a Kafka, and whoever works on this ledger publishes to these.
create table ledger_topics (
  only_one boolean primary key default true check (only_one),
  prefix text not null                    -- TOPIC_PREFIX
);
insert into ledger_topics (prefix)
select min(prefix) from (
  select distinct left(topic, -length('payout.commands')) as prefix from intake_offsets where topic like '%payout.commands'
) read
having count(*) = 1;

-- Down Migration
drop table ledger_topics;
