import Dispatch
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// The records of a page of a listing, read and opened on all processors before they are shown one by one: that is most
/// of the work that needs no store.
enum OpenedPage {
    /// A record of the page.
    struct Element: Sendable {
        let record: NodeRecord
        /// As it is stored.
        let text: [UInt8]
        /// nil when the keys of its parent were not known, or it does not open: it is opened again in its turn.
        let node: OpenedNode?
    }

    /// Records that one thread opens at a time; for fewer it is not worth waking another thread.
    private static let piece = 64

    /// What is new on a page; nothing of what this device has already.
    static func of(_ page: IndexPage, _ skeleton: inout TreeSkeleton) throws(TreeError) -> [Element?] {
        var (objects, parents) = ([(id: NodeID, object: JSONObject)?](), [NodeParent: ParentKeys]())
        var ids = Set<NodeID>()
        for entry in page.entries {
            // Of a node that is listed twice, the second record is compared with the first.
            guard let id = NodeID(text: entry.key.text), let object = entry.data?.object,
                ids.insert(id).inserted, try skeleton.store.state(of: id) == nil,
                let parent = object["p"]?.stringValue.flatMap(NodeParent.init(text:))
            else {
                objects.append(nil)
                continue
            }
            objects.append((id, object))
            if parents[parent] == nil { parents[parent] = try skeleton.parentKeys(of: parent) }
        }
        return open(objects, skeleton.keyring.opener, parents)
    }

    /// - Parameters:
    ///   - objects: nil where nothing is to be opened.
    ///   - parents: the keys that are known before the page.
    /// - Returns: one element for each object; nil also for what is not a record. The result does not depend on the
    ///   distribution of the work.
    private static func open(
        _ objects: [(id: NodeID, object: JSONObject)?], _ opener: NodeOpener, _ parents: [NodeParent: ParentKeys]
    ) -> [Element?] {
        let pieces = (objects.count + piece - 1) / piece
        guard pieces > 1 else { return objects.map { $0.flatMap { element($0.id, $0.object, opener, parents) } } }
        return .init(unsafeUninitializedCapacity: objects.count) { room, count in
            // Each place is written once, by the one thread that has its piece.
            nonisolated(unsafe) let places = room
            DispatchQueue.concurrentPerform(iterations: pieces) { number in
                for place in number * piece..<min(objects.count, (number + 1) * piece) {
                    let made = objects[place].flatMap { element($0.id, $0.object, opener, parents) }
                    places.initializeElement(at: place, to: made)
                }
            }
            count = objects.count
        }
    }

    private static func element(
        _ id: NodeID, _ object: JSONObject, _ opener: NodeOpener, _ parents: [NodeParent: ParentKeys]
    ) -> Element? {
        guard let record = try? NodeRecord(object, from: .server) else { return nil }
        let node = parents[record.parent].flatMap { try? opener.open(record, id, below: $0) }
        return Element(record: record, text: object.serialized(), node: node)
    }
}
