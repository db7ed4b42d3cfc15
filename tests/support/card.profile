# allocrig-profile 1
# The card of the tests: its figures stay, so that expected times do, whatever a new measurement of
# a real card says. They are those of an H100: medians of 40 calls (10 from 1 GiB on) on an idle
# card, by small programs that time one kind of call; busy ones are middles of what was seen.
name: card
card: NVIDIA H100 80GB HBM3, driver 580.159, in a virtual machine
source: measured on one card with small programs; medians of 10 to 40 calls on an idle card
total_bytes: 85017493504
usable_bytes: 84470000000
page_bytes: 2097152
granule_bytes: 512
first_address: 1099511627776
cleaning_bytes_per_us: 374000
cleaning_wait_bytes: alloc 17179869184
cleaning_wait_bytes: create 4294967296
busy_percent: alloc 501
busy_percent: alloc_held 501
busy_percent: alloc_shared 400
busy_percent: create 400
busy_percent: destroy 400
busy_percent: map 400
busy_percent: map_again 400
busy_percent: access 415
busy_percent: unmap 688
cost: alloc 256 31880
cost: alloc 4096 31680
cost: alloc 65536 31750
cost: alloc 1048576 31840
cost: alloc 2097152 31760
cost: alloc 20971520 33170
cost: alloc 67108864 38390
cost: alloc 268435456 52270
cost: alloc 1073741824 110200
cost: alloc 8589934592 669410
cost: alloc_held 256 34640
cost: alloc_held 4096 32340
cost: alloc_held 65536 32610
cost: alloc_held 1048576 32520
cost: alloc_held 2097152 37200
cost: alloc_held 20971520 41560
cost: alloc_held 67108864 94440
cost: alloc_held 268435456 60480
cost: alloc_held 1073741824 110200
cost: alloc_held 8589934592 669410
cost: alloc_shared 256 2020
cost: alloc_shared 4096 1120
cost: alloc_shared 65536 1160
cost: alloc_shared 1048576 860
cost: free 256 28630
cost: free 4096 28380
cost: free 65536 28390
cost: free 1048576 28490
cost: free 2097152 28360
cost: free 20971520 37780
cost: free 67108864 50720
cost: free 268435456 101180
cost: free 1073741824 354500
cost: free 8589934592 3674660
cost: free_held 256 30870
cost: free_held 4096 29190
cost: free_held 65536 30410
cost: free_held 1048576 29000
cost: free_held 2097152 31400
cost: free_held 20971520 40790
cost: free_held 67108864 55690
cost: free_held 268435456 112780
cost: free_held 1073741824 354500
cost: free_held 8589934592 3674660
cost: free_shared 256 1910
cost: free_shared 4096 1230
cost: free_shared 65536 1240
cost: free_shared 1048576 1480
cost: reserve 2097152 550
cost: reserve 20971520 530
cost: reserve 67108864 2530
cost: reserve 268435456 2520
cost: reserve 1073741824 4850
cost: reserve 8589934592 16140
cost: release 2097152 480
cost: release 20971520 560
cost: release 67108864 2010
cost: release 268435456 1980
cost: release 1073741824 4960
cost: release 8589934592 21850
cost: create 2097152 10180
cost: create 20971520 9870
cost: create 67108864 10410
cost: create 268435456 16470
cost: create 1073741824 33590
cost: create 8589934592 73200
cost: destroy 2097152 11420
cost: destroy 20971520 17870
cost: destroy 67108864 31330
cost: destroy 268435456 93850
cost: destroy 1073741824 517110
cost: destroy 8589934592 3500930
cost: map 2097152 710
cost: map 20971520 690
cost: map 67108864 760
cost: map 268435456 770
cost: map 1073741824 1840
cost: map 8589934592 17480
cost: map_again 2097152 8106
cost: access 2097152 23660
cost: access 20971520 23420
cost: access 67108864 39640
cost: access 268435456 40990
cost: access 1073741824 93900
cost: access 8589934592 379800
cost: unmap 2097152 16220
cost: unmap 20971520 16280
cost: unmap 67108864 23710
cost: unmap 268435456 23850
cost: unmap 1073741824 40370
cost: unmap 8589934592 129380
cost: pool_alloc 256 510
cost: pool_grow 33554432 50820
cost: pool_grow 67108864 72330
cost: pool_grow 268435456 255300
cost: pool_grow 1073741824 1692060
cost: pool_pending 256 18490
cost: pool_free 256 650
