import ThicketProtocol

/// What the planner reads besides the log itself.
protocol RetentionSource: StoreReader {
    /// Runs `body` over one state of the store.
    func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result
    /// Versions of the object whose bodies are kept apart from the log, ascending.
    func keptVersions(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> [Version]
}

/// Visits the buckets one after the other and plans what the two retentions cut.
final class RetentionPlanner<Reader: RetentionSource>: StoreKeeper {
    private let reader: Reader
    private let settings: RetentionSettings

    init(reader: Reader, settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? { nil }
}
