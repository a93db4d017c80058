import Synchronization
import ThicketProtocol

/// A store in memory, for tests and for the simulation, in which a fault plan decides about failures and crashes.
///
/// Behaves like `SQLiteStore` for its callers. Handles made before a crash keep failing after `restart()`.
public final class MemoryStore: Store {
    /// Keys and numbers that identify the store.
    public let identity: StoreIdentity
    let shared: Mutex<Shared>
    private let faults: FaultPlan?

    struct Shared: Sendable {
        var state = MemoryState()
        /// Incremented by every crash; a handle of an earlier generation fails.
        var generation = 0
        var isDown = false
        var commits = 0
        var lastRow: BucketRow = 0
    }

    /// - Parameter faults: called at every commit; nil means that no commit fails.
    public init(identity: StoreIdentity = .seeded(0), faults: FaultPlan? = nil) {
        self.identity = identity
        self.faults = faults
        shared = Mutex(Shared())
    }

    /// Fails with `closed` while the store is down.
    public func makeWriter() throws(StoreError) -> any StoreWriter {
        MemoryWriter(self, generation: try generationIfUp())
    }
    /// Fails with `closed` while the store is down.
    public func makeReader() throws(StoreError) -> any StoreReader {
        MemoryReader(self, generation: try generationIfUp())
    }
    /// Fails with `closed` while the store is down.
    public func makeBlobLedger() throws(StoreError) -> any BlobLedger {
        MemoryBlobLedger(self, generation: try generationIfUp())
    }
    /// Plans retention only; this store has no segments. Fails with `closed` while the store is down.
    public func makeMaintenance(_ settings: RetentionSettings) throws(StoreError) -> any StoreMaintenance {
        RetentionPlanner(reader: MemoryReader(self, generation: try generationIfUp()), settings: settings)
    }

    /// Whether the store has crashed and was not restarted.
    public var isDown: Bool { shared.withLock { $0.isDown } }

    /// Crashes the store as a killed process would: durable data remains, every handle fails.
    public func crash() {
        shared.withLock {
            $0.isDown = true
            $0.generation += 1
        }
    }

    /// Simulates the start of the next process: new handles work again.
    public func restart() { shared.withLock { $0.isDown = false } }

    /// Registers an app; false if it was already registered.
    @discardableResult
    public func addApp(_ app: AppID) -> Bool { shared.withLock { $0.state.apps.insert(app).inserted } }

    /// Registers a token.
    /// - Parameter tokenHash: SHA-256 of the token's text.
    public func addGrant(_ grant: TokenGrant, tokenHash: [UInt8]) {
        shared.withLock { $0.state.grants[tokenHash] = grant }
    }

    /// Registers an administrator key of an app.
    /// - Parameter hash: SHA-256 of the key's text.
    public func addAdminKey(_ app: AppID, hash: [UInt8]) {
        shared.withLock { $0.state.adminKeys[hash] = app }
    }

    /// Sets the mode of new buckets of this name; existing buckets keep theirs.
    public func setMode(_ mode: BucketMode, ofNew name: BucketName, in app: AppID) {
        shared.withLock { $0.state.modes[MemoryState.NamePlace(app: app, name: name)] = mode }
    }

    private func generationIfUp() throws(StoreError) -> Int {
        let generation = shared.withLock { $0.isDown ? nil : $0.generation }
        guard let generation else { throw StoreError(.closed, "the store has crashed and was not restarted") }
        return generation
    }

    /// Runs one commit through the fault plan.
    func commit(
        generation: Int, changes: Int, _ write: (inout MemoryState) throws(StoreError) -> [BucketMove]
    ) throws(StoreError) -> [BucketMove] {
        try shared.withLock { (shared) throws(StoreError) -> [BucketMove] in
            guard shared.generation == generation else { throw StoreError(.closed, "the store has crashed") }
            shared.commits += 1
            let fault = faults?(CommitPoint(number: shared.commits, changes: changes)) ?? .none
            if case .fail(let error) = fault { throw error }
            let moves = fault == .crashBefore ? [] : try write(&shared.state)
            guard fault == .none else {
                shared.isDown = true
                shared.generation += 1
                throw StoreError(.closed, "the store crashed at commit \(shared.commits)")
            }
            return moves
        }
    }
}
