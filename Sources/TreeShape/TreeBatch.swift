public import ThicketProtocol

/// Changes of a tree, and of the trees of receivers, that are made together or not at all: `{"id":…,"ops":[…]}`.
///
/// The operations are made in order, and each sees those before it. A batch is written in one way: members and
/// operations in order, numbers in plain digits, `known` in the order of the ids. The same batch that is sent again has
/// the same bytes: a server compares their digest.
public struct TreeBatch: Sendable, Hashable {
    /// What the sender calls the batch; a later batch has another id.
    public let id: BatchID
    /// From 1 to `TreeLimits.batchOperationsMax` operations.
    public let operations: [TreeOperation]

    /// A batch, which is not checked.
    public init(id: BatchID, _ operations: [TreeOperation]) { (self.id, self.operations) = (id, operations) }

    /// Reads the body of a request. Its size is checked before it is parsed.
    ///
    /// - Throws: `BatchFault` for every deviation, with the index of the operation that is at fault.
    public init(parsing text: [UInt8]) throws(BatchFault) {
        let (id, listed): (BatchID, [JSONValue])
        do throws(TreeCallFault) {
            let value = try CallObject.parse(
                text, bytesMax: TreeLimits.batchBytesMax, maxDepth: TreeLimits.batchDepthMax)
            let object = try CallObject(value, ["id", "ops"])
            (id, listed) = (try object.id("id"), try object.list("ops"))
            guard !listed.isEmpty else { throw .badValue("ops") }
        } catch { throw BatchFault(.form(error)) }
        guard listed.count <= TreeLimits.batchOperationsMax else { throw BatchFault(.tooManyOperations) }
        var operations = [TreeOperation]()
        operations.reserveCapacity(listed.count)
        for (index, value) in listed.enumerated() {
            do throws(BatchFault.Kind) { operations.append(try TreeOperation(value)) } catch {
                throw BatchFault(error, at: index)
            }
        }
        guard operations.reduce(0, { $0 + $1.knownCount }) <= TreeLimits.knownNodesMax else {
            throw BatchFault(.tooManyKnown)
        }
        self.init(id: id, operations)
    }

    /// The batch as JSON, in its written form.
    public var object: JSONObject { ["id": .string(id.text), "ops": .array(operations.map(\.json))] }
}
