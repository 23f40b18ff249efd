-- Up Migration
-- Older code: does not work

-- Nothing but one step of the server's history raised the fence: a person's word that nothing was lost is about one step.
-- Older code takes a fence down by such a word whatever raised it.
alter table merchants add column recovering_one_step boolean not null default false;
update compatibility set oldest = '0059_one_step';

-- Down Migration
update compatibility set oldest = '0050_newest_only';
alter table merchants drop column recovering_one_step;
