import ThicketClient
import ThicketFaultDisk
import ThicketTreesystem

/// Where a simulated device keeps its tree, over all restarts of its program.
protocol TreeStorage: AnyObject {
    /// The store of the present process.
    var store: TreeStore { get }
    /// Plans a fault in the transaction of one turn: the program dies in it, or it is refused.
    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom)
    func endTurn()
    /// The program was killed, and starts again with what is left.
    func restart(_ random: inout SimulationRandom) throws
    /// What happened on its disk since the last call; nil: nothing, or it has no disk.
    func takeShape() -> UInt64?
}

/// SQLite in memory: a transaction is kept as a whole, and none is refused.
final class MemoryTreeStorage: TreeStorage {
    let store: TreeStore

    init() throws { store = try TreeStore() }
    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom) {}
    func endTurn() {}
    func restart(_ random: inout SimulationRandom) {}
    func takeShape() -> UInt64? { nil }
}

/// The store's file on a disk that fails or crashes in the middle of any call, as that of `DiskClientStorage`.
final class DiskTreeStorage: TreeStorage {
    private let disk: SimulatedDisk
    private let durability: StoreDurability
    private let key = StoreKey.random()
    private var opened: TreeStore?

    private static let fileName = "tree.db"
    /// The range of file changes in which the crash is placed.
    private static let changesMax = 16

    init(_ durability: StoreDurability) throws {
        self.durability = durability
        disk = try SimulatedDisk()
        opened = try open()
        try disk.makeDurable()
    }

    private func open() throws -> TreeStore {
        try TreeStore(
            StoreFile(path: disk.path(Self.fileName), key: key, durability: durability, vfs: disk.name),
            durability: durability)
    }

    /// Open from the beginning, but for the moment of a restart.
    var store: TreeStore {
        guard let opened else { preconditionFailure("the store did not open again, and the run went on") }
        return opened
    }

    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom) {
        if dies, random.chance(700) { return disk.crash(atChange: 1 + random.below(Self.changesMax)) }
        guard fails else { return }
        let failures: [FaultRule.Failure] = [.io, .full, .short]
        disk.fail(FaultRule(.write, failures[random.below(3)], skipping: random.below(4), times: 1))
    }

    func endTurn() { if !disk.isCrashed { disk.heal() } }
    func takeShape() -> UInt64? { disk.takeShape() }

    func restart(_ random: inout SimulationRandom) throws {
        disk.crash()
        opened = nil
        let losses = DiskModel.Loss.allCases
        try disk.restart(durability == .program ? .nothing : losses[random.below(losses.count)], &random)
        opened = try open()
    }
}
