# allocrig-profile 1
# A device for known answers: every byte counts as one, calls cost nothing, addresses go from 0
# upward without gaps, and there is no end to it unless `capacity` says so.
name: bump
total_bytes: 0
page_bytes: 0
granule_bytes: 1
first_address: 0
