import ThicketClient
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite

/// Where a simulated client stores its copy, over all restarts of its program.
protocol ClientStorage: AnyObject {
    /// The store of the present process.
    var store: any LocalStore { get }
    /// Plans a fault in the transactions of one turn: the program dies in one, or one is refused.
    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom)
    func endTurn()
    /// The program or its machine is killed, and starts again with what is left.
    func restart(_ random: inout SimulationRandom) throws
    /// What happened on its disk since the last call; nil: nothing, or it has no disk.
    func takeShape() -> UInt64?
}

/// A store in memory: a transaction is lost as a whole, or kept.
final class MemoryClientStorage: ClientStorage {
    private let kept = MemoryLocalStore(replaysSteps: true)
    var store: any LocalStore { kept }

    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom) {
        kept.failsNextCommit = fails || (dies && random.chance(500))
    }

    func endTurn() { kept.failsNextCommit = false }
    func restart(_ random: inout SimulationRandom) {}
    func takeShape() -> UInt64? { nil }
}

/// The real store on a disk that fails or crashes in the middle of any call.
///
/// With the durability `program` a power loss may undo edits that were not sent yet, by contract; so only the program
/// is killed. With `power` the machine loses power, and unsynced data is lost or torn.
final class DiskClientStorage: ClientStorage {
    private let disk: SimulatedDisk
    private let durability: StoreDurability
    private let key = StoreKey.random()
    private(set) var store: any LocalStore

    private static let fileName = "client.db"
    /// The range of file changes in which the crash is placed: a turn makes none to twenty.
    private static let changesMax = 16

    init(_ durability: StoreDurability) throws {
        self.durability = durability
        disk = try SimulatedDisk()
        store = try SQLiteLocalStore(
            path: disk.path(Self.fileName), key: key, durability: durability, vfs: disk.name)
        try disk.makeDurable()
    }

    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom) {
        if dies, random.chance(700) { return disk.crash(atChange: 1 + random.below(Self.changesMax)) }
        guard fails else { return }
        // The sync itself does not fail: data that was written then and is not known to be durable may come back after
        // a crash, although the user was told otherwise.
        let failures: [FaultRule.Failure] = [.io, .full, .short]
        disk.fail(FaultRule(.write, failures[random.below(3)], skipping: random.below(4), times: 1))
    }

    func endTurn() { if !disk.isCrashed { disk.heal() } }
    func takeShape() -> UInt64? { disk.takeShape() }

    func restart(_ random: inout SimulationRandom) throws {
        disk.crash()
        store.close()
        let losses = DiskModel.Loss.allCases
        try disk.restart(durability == .program ? .nothing : losses[random.below(losses.count)], &random)
        store = try SQLiteLocalStore(
            path: disk.path(Self.fileName), key: key, durability: durability, vfs: disk.name)
    }
}
