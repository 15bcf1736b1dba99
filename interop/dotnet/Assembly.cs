// The tests mostly wait for the broker, so more of them run at once than there are processors.
[assembly: CollectionBehavior(MaxParallelThreads = 8)]
