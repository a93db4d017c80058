import Synchronization
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// A tree of one account with keys and randomness from a seed.
struct TreeCase {
    let tree: TreePlace
    let random: TreeRandom
    let keys: TreeKeys
    let sealer: NodeSealer
    let opener: NodeOpener

    init(seed: UInt64, app: String = "notes", owner: String = "ann") throws {
        tree = TreePlace(app: try AppID(app), owner: try UserID(owner))
        random = Self.random(seed: seed)
        keys = TreeKeys(secret: SecureBytes(copying: (0..<32).map { UInt8($0) }), tree: tree)
        sealer = NodeSealer(tree, random: random)
        opener = NodeOpener(tree)
    }

    static func random(seed: UInt64) -> TreeRandom {
        let source = SeededSource(seed: seed)
        return TreeRandom(secret: { SecureBytes(copying: source.bytes($0)) }, bytes: { source.bytes($0) })
    }

    var home: ParentKeys { keys.parent(.home) }

    func newID() -> NodeID { NodeID.random(random.bytes) }

    /// A node below a parent, made and opened again.
    func node(
        _ name: String, below parent: ParentKeys, content: DraftContent = .none
    ) throws -> OpenedNode {
        let id = newID()
        let record = try sealer.create(NodeDraft(NodeName(name), content: content), id, below: parent)
        return try opener.open(record, id, below: parent)
    }
}

/// Bytes from a seed, for several closures.
final class SeededSource: Sendable {
    private let generator: Mutex<SeededRandom>

    init(seed: UInt64) { generator = Mutex(SeededRandom(seed: seed)) }

    func bytes(_ count: Int) -> [UInt8] {
        generator.withLock { generator in
            (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        }
    }
}

extension NodeRecord {
    /// The record as it arrives at another device: written, and read again.
    func sent() throws -> NodeRecord { try NodeRecord(parsing: object.serialized(), from: .server) }
}

/// The kind of a fault, for comparisons: `nameMismatch` contains a node.
func kind(of fault: NodeFault) -> String { String(describing: fault) }

/// What opening a record and its inline content throws; nil when both open.
func fault(
    _ record: NodeRecord, _ id: NodeID, below parent: ParentKeys, _ opener: NodeOpener
) -> NodeFault? {
    do throws(NodeFault) {
        _ = try opener.open(record, id, below: parent).inlineContent()
        return nil
    } catch { return error }
}
