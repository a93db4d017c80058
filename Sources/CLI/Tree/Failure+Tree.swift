import ThicketClient
import ThicketCommandLine
import ThicketTreesystem

extension Failure {
    /// - Parameter what: what was not done, as the beginning of a sentence.
    package init(_ what: String, tree error: TreeError) {
        let text =
            switch error.code {
            case .nameTaken: "another node has this name (capitals and small letters are the same)"
            case .contentLost:
                "the server has lost this content. A machine that has it writes it with 'thicket tree get --offline'; "
                    + "remove the node and put the file again"
            case .refused where error.reason.map { same($0, "guest-limit") } == true:
                "the link has no files or bytes left"
            case .parentMissing: "the node above does not exist; 'thicket tree mkdir -p' makes it"
            case .contentMismatch where error.reason.map { same($0, "other-content") } == true:
                "its bytes are not those that its author has signed: the server, with the help of a holder of the "
                    + "message's key, has put others in their place. Ask the author to send it again"
            default: error.detail
            }
        self.init("\(what): \(text)", Failure.code(error))
        // A full queue, like a failed store, concerns every further change.
        isOfCopy = error.code == .store || error.code == .limit
        isInterruption = error.code == .cancelled
    }

    static func code(_ error: TreeError) -> ExitCode {
        // The client's codes are kept in the reason.
        if let reason = error.reason {
            switch ClientError.Code(rawValue: reason) {
            case .storeInUse: return .storeInUse
            case .locked: return .locked
            case .unauthorized: return .unauthorized
            default: break
            }
        }
        return switch error.code {
        case .keys:
            switch error.reason {
            case "alarm", "needs-confirmation", "other-owner": .alarm
            case "absent": .notFound
            default: .offline
            }
        case .notFound, .parentMissing: .notFound
        case .link:
            switch error.reason {
            case "malformed": .usage
            case "other-account": .alarm
            default: .unauthorized
            }
        case .trunk, .invalidName, .noKeys, .receiver, .sharing: .usage
        case .refused: .refused
        case .network, .offline, .deadline: .offline
        default: .failure
        }
    }

    /// The user ended the command.
    static var interrupted: Failure {
        var failure = Failure("interrupted")
        failure.isInterruption = true
        return failure
    }
}

/// Runs calls of the tree and reports their errors with the words for what was being done.
func growing<Value: Sendable>(
    _ what: @autoclosure () -> String, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws(TreeError) -> Value
) async throws(Failure) -> Value {
    do { return try await body() } catch { throw Failure(what(), tree: error) }
}
