-- Up Migration

-- Those in review are asked about again from now on; spread over an hour.
update payins set due_at = now() + random() * interval '1 hour' where state = 'review' and due_at is null;

-- Down Migration
update payins set due_at = null where state = 'review';
