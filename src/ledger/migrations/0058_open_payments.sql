-- Up Migration
-- Older code: works

-- Whatever pays the same and was to be paid before this had ended when this row was written: a later payment of the same need
-- look no further back. Null: nobody looked, as older code does not.
alter table payments add column open_from timestamptz;

-- Down Migration
alter table payments drop column open_from;
