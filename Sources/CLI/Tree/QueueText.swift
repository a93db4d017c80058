import ThicketCommandLine
import ThicketProtocol
import ThicketTreesystem

/// Changes that wait, as the commands print them.
enum QueueText {
    static func kind(_ kind: QueuedOperation.Kind) -> String {
        switch kind {
        case .create: "create"
        case .change: "change"
        case .delete: "remove"
        case .copy: "send"
        case .burn: "burn"
        }
    }

    /// The word of a state, for `--json`.
    static func word(_ state: QueuedOperation.State) -> String {
        switch state {
        case .waiting: "waiting"
        case .uploading: "uploading"
        case .sending: "sending"
        case .conflict: "conflict"
        case .removedElsewhere: "removed-elsewhere"
        case .contentUnavailable: "content-unavailable"
        case .keysUnavailable: "keys-unavailable"
        case .failed: "refused"
        }
    }

    /// The state for a person.
    static func state(_ state: QueuedOperation.State) -> String {
        switch state {
        case .waiting: "waits for the server"
        case .uploading: "its content is being uploaded"
        case .sending: "was sent and is not confirmed"
        case .conflict: "another device changed the content too; 'retry' keeps this one, 'discard' the other one"
        case .removedElsewhere: "another device removed it; 'retry' creates it again, 'discard' lets it go"
        case .contentUnavailable:
            "its content is not on this machine any more; 'discard' drops it, so that 'put' can send the file again"
        case .keysUnavailable(let reason):
            "there are no keys of the receiver that may be used (\(reason)); 'retry' looks again, 'discard' drops it"
        case .failed(let reason): "the server refused it (\(reason)); 'retry' sends it again, 'discard' drops it"
        }
    }

    /// The state of a change for a person, with what the server reports.
    static func state(of operation: QueuedOperation) -> String {
        state(operation.state) + (operation.trouble.map { "; \($0)" } ?? "")
    }

    /// The path of the node, or its id when it is not shown.
    static func place(of operation: QueuedOperation, in tree: Treesystem) async -> String {
        guard let path = try? await tree.path(of: operation.node) else { return operation.node.text }
        return TreeText.named(path)
    }

    /// - Parameter pointer: the pointer node of the branch that the tree is; nil: the own tree.
    static func json(
        _ operation: QueuedOperation, in tree: Treesystem, at pointer: TreePath? = nil
    ) async -> String {
        var object: JSONObject = [
            "id": .number(JSONNumber(operation.id.number)), "node": .string(operation.node.text),
            "kind": .string(kind(operation.kind)), "state": .string(word(operation.state)),
        ]
        if let path = try? await tree.path(of: operation.node) { object["path"] = .string(TreeText.text(path)) }
        if let pointer { object["in"] = .string(pointer.description) }
        if case .failed(let reason) = operation.state { object["reason"] = .string(reason) }
        if let trouble = operation.trouble { object["trouble"] = .string(trouble) }
        if operation.attempts > 0 { object["attempts"] = .number(JSONNumber(Int64(operation.attempts))) }
        if let progress = operation.progress {
            object["bytes"] = .number(JSONNumber(Int64(clamping: progress.bytes)))
            object["total"] = .number(JSONNumber(Int64(clamping: progress.total)))
        }
        return JSONValue.object(object).serializedText + "\n"
    }
}
