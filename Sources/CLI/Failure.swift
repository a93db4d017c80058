import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The exit codes of `thicket` beyond those that every program has. Help and documents are generated from this list.
extension ExitCode {
    /// The object, version, field or profile does not exist.
    package static let notFound = ExitCode(3)
    /// The server refused the change for good.
    package static let refused = ExitCode(4)
    /// The server cannot be reached, did not answer in time, or does not open the bucket now.
    package static let offline = ExitCode(5)
    /// No login is stored, or the server does not accept the token or does not permit the call.
    package static let unauthorized = ExitCode(6)
    /// Another command is using the local store.
    package static let storeInUse = ExitCode(7)

    /// The profile is locked.
    package static let locked = ExitCode(8)

    /// The server's key log has broken its rules, or digits of a safety number differ.
    package static let alarm = ExitCode(9)

    /// Every code with its meaning.
    package static let meanings: [(code: ExitCode, meaning: String)] = [
        (.success, "done"),
        (.failure, "it did not work, or there is a difference"),
        (.usage, "the words or settings given cannot be used; nothing was done"),
        (.notFound, "no such object, version, field or profile"),
        (.refused, "the server refused the change, or one that is kept here"),
        (.offline, "the server cannot be reached, did not answer in time, or does not open the bucket now"),
        (.unauthorized, "not logged in, or the token is not accepted or does not permit this"),
        (.storeInUse, "another command uses the local store"),
        (.locked, "the profile is locked: 'thicket unlock' asks for its passphrase"),
        (.alarm, "an alarm about keys: 'thicket keylog' says what was found, or safety numbers differ"),
    ]
}

/// Why a command ends without having done its work: what happened, to what, what to do next, and an exit code.
package struct Failure: Error, Equatable {
    package let text: String
    package let code: ExitCode
    /// The failure concerns one file of a folder; the command goes on with the other files.
    var isOfOneFile = false
    /// The local copy is damaged, or sealed with other keys.
    var isOfCopy = false
    /// The user ended the command with Ctrl-C.
    var isInterruption = false
    /// Standard output cannot be written.
    private var isOfOutput = false

    /// Whether the failure concerns everything that the command would do next, and not one of several things.
    package var endsCommand: Bool { isInterruption || isOfCopy || isOfOutput }

    /// Standard output was not written; without a text when its reader has closed the pipe, as `head` does: then
    /// nothing is wrong.
    static var output: Failure {
        let error = Terminal.outputError ?? EIO
        var failure = Failure(error == EPIPE ? "" : "the output could not be written: \(Files.reason(error))")
        failure.isOfOutput = true
        return failure
    }

    package init(_ text: String, _ code: ExitCode = .failure) {
        self.text = text
        self.code = code
    }

    /// - Parameter what: what was being done, as the beginning of a sentence: "cannot read notes/plan".
    init(_ what: String, _ error: ClientError) {
        self.init("\(what): \(Failure.reason(error))", Failure.code(error))
        isOfCopy = error.code == .store
    }

    private static func reason(_ error: ClientError) -> String {
        if error.code == .refused || error.code == .unauthorized, let number = error.number {
            return "\(error.detail) (\(number))"
        }
        return error.code == .integrity ? "\(error.detail) ('thicket repair' shows both)" : error.detail
    }

    static func code(_ error: ClientError) -> ExitCode {
        switch error.code {
        case .invalidName, .invalidOptions: .usage
        case .storeInUse: .storeInUse
        case .locked: .locked
        case .notFound: .notFound
        case .unauthorized: .unauthorized
        case .refused: .refused
        case .offline, .deadline, .network, .protocolViolation, .unavailable: .offline
        default: .failure
        }
    }

    /// The explanation, for a person, of the error number with which the server refused a change.
    static func meaning(of number: Int) -> String {
        switch ErrorCode(rawValue: number) {
        case .tooLarge:
            "it is too large (413): larger than the server keeps objects (its setting is called document-bytes-max), or an encrypted note "
                + "whose title or text is longer than a note's may be, or which is one more than the account may have"
        default: RefusedEdit.reason(of: number)
        }
    }
}

/// Runs client calls and reports their errors with the words for what was being done.
func trying<Value: Sendable>(
    _ what: @autoclosure () -> String, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws(ClientError) -> Value
) async throws(Failure) -> Value {
    do {
        return try await body()
    } catch {
        throw Failure(what(), error)
    }
}

/// The same for synchronous calls.
func blocking<Value>(
    _ what: @autoclosure () -> String, _ body: () throws(ClientError) -> Value
) throws(Failure) -> Value {
    do {
        return try body()
    } catch {
        throw Failure(what(), error)
    }
}
