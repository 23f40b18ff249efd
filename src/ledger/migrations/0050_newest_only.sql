-- Up Migration
-- Older code: does not work

-- Code of before 0025, 0031, 0033, 0035, 0039 to 0041, 0046 to 0048 sends, or fails, what they keep from it; none of them
-- said so.
update compatibility set oldest = '0050_newest_only';

-- Down Migration
update compatibility set oldest = '0016_compatibility';
