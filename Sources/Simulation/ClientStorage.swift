import ThicketClient
import ThicketProtocol
import ThicketSQLite

/// What a simulated client keeps its copy in, over all lives of its program.
protocol ClientStorage: AnyObject {
    /// Of this life.
    var store: any LocalStore { get }
    /// Something goes wrong in the transactions of one turn: the program dies in one, or one is refused.
    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom)
    func endTurn()
    /// The program is killed, or its machine, and begins anew with what is left.
    func restart(_ random: inout SimulationRandom) throws
    /// What was done to its disk since this was asked last; nil: nothing, or there is none.
    func takeShape() -> UInt64?
}

/// A store in memory: a transaction is lost whole, or kept.
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

/// The real store over a disk that fails or crashes in the middle of any call.
///
/// With the durability `program` a loss of power may take back edits that were not sent yet, by contract; so there only
/// the program is killed. With `power` the power goes, and what was not synced is lost or torn.
final class DiskClientStorage: ClientStorage {
    private let disk: SimulatedDisk
    private let durability: StoreDurability
    private let key = StoreKey.random()
    private(set) var store: any LocalStore

    private static let fileName = "client.db"
    /// Changes of files among which one is chosen: a turn makes none to twenty.
    private static let changesMax = 16

    init(_ durability: StoreDurability) throws {
        self.durability = durability
        disk = try SimulatedDisk()
        store = try SQLiteLocalStore(
            path: disk.path(Self.fileName), key: key, durability: durability, vfs: disk.name)
        try disk.settle()
    }

    func beginTurn(dies: Bool, fails: Bool, _ random: inout SimulationRandom) {
        if dies, random.chance(700) { return disk.crash(atChange: 1 + random.below(Self.changesMax)) }
        guard fails else { return }
        // Not the sync itself: what then was written and is not known to be there may come back after a crash, and the
        // person behind it was told otherwise.
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
