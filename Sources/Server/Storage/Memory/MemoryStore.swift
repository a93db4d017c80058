import Synchronization
import ThicketProtocol

/// A store in memory: for tests and for the simulation, which decides by a fault plan when it fails or crashes.
///
/// Shows the same to callers as `SQLiteStore`. Handles made before a crash stay dead after `restart()`.
public final class MemoryStore: Store {
    public let identity: StoreIdentity
    let shared: Mutex<Shared>
    private let faults: FaultPlan?

    struct Shared: Sendable {
        var state = MemoryState()
        /// Raised by every crash; a handle of an earlier life is dead.
        var life = 0
        var isDown = false
        var commits = 0
        var lastRow: BucketRow = 0
    }

    /// - Parameter faults: asked at every commit; nil means that nothing ever fails.
    public init(identity: StoreIdentity = .seeded(0), faults: FaultPlan? = nil) {
        self.identity = identity
        self.faults = faults
        shared = Mutex(Shared())
    }

    public func makeWriter() throws(StoreError) -> any StoreWriter { MemoryWriter(self, life: try lifeIfUp()) }
    public func makeReader() throws(StoreError) -> any StoreReader { MemoryReader(self, life: try lifeIfUp()) }
    public func makeKeeper(_ settings: RetentionSettings) throws(StoreError) -> any StoreKeeper {
        RetentionPlanner(reader: MemoryReader(self, life: try lifeIfUp()), settings: settings)
    }

    /// Whether a fault plan has crashed the store.
    public var isDown: Bool { shared.withLock { $0.isDown } }

    /// Ends the store as a killed process would: what is durable stays, every handle is dead.
    public func crash() {
        shared.withLock {
            $0.isDown = true
            $0.life += 1
        }
    }

    /// The next process begins: new handles work again.
    public func restart() { shared.withLock { $0.isDown = false } }

    /// Makes an app known; false when it was.
    @discardableResult
    public func addApp(_ app: AppID) -> Bool { shared.withLock { $0.state.apps.insert(app).inserted } }

    /// Makes a token good.
    /// - Parameter tokenHash: SHA-256 of the token's text.
    public func addGrant(_ grant: TokenGrant, tokenHash: [UInt8]) {
        shared.withLock { $0.state.grants[tokenHash] = grant }
    }

    /// Makes a key of an administrator good.
    /// - Parameter hash: SHA-256 of the key's text.
    public func addAdminKey(_ app: AppID, hash: [UInt8]) {
        shared.withLock { $0.state.adminKeys[hash] = app }
    }

    /// Says what buckets of that name are to be that are not there yet; those that are there stay as they are.
    public func setMode(_ mode: BucketMode, ofNew name: BucketName, in app: AppID) {
        shared.withLock { $0.state.modes[MemoryState.NamePlace(app: app, name: name)] = mode }
    }

    private func lifeIfUp() throws(StoreError) -> Int {
        let life = shared.withLock { $0.isDown ? nil : $0.life }
        guard let life else { throw StoreError(.closed, "the store has crashed and was not restarted") }
        return life
    }

    /// Runs one commit through the fault plan.
    func commit(
        life: Int, changes: Int, _ write: (inout MemoryState) throws(StoreError) -> [BucketMove]
    ) throws(StoreError) -> [BucketMove] {
        try shared.withLock { (shared) throws(StoreError) -> [BucketMove] in
            guard shared.life == life else { throw StoreError(.closed, "the store has crashed") }
            shared.commits += 1
            let fault = faults?(CommitPoint(number: shared.commits, changes: changes)) ?? .none
            if case .fail(let error) = fault { throw error }
            let moves = fault == .crashBefore ? [] : try write(&shared.state)
            guard fault == .none else {
                shared.isDown = true
                shared.life += 1
                throw StoreError(.closed, "the store crashed at commit \(shared.commits)")
            }
            return moves
        }
    }
}
