import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// Alarms of the key log: each command that opens a session of an account with keys prints those that are not resolved,
/// once, at its end, whichever command has found them. Evidence is written beside the profile.
final class AlarmReports: Sendable {
    /// Most alarms that one command prints.
    static let linesMax = 5
    /// Longest wait of a command for the check of the own entries.
    static let checkTimeMax = Duration.seconds(5)

    /// The profile's key book, and the folder of its evidence.
    private let place = Mutex<(people: StoreLocation, evidence: String)?>(nil)

    /// The command works with this key book.
    func watch(_ people: StoreLocation, evidence: String) { place.withLock { $0 = (people, evidence) } }

    /// Prints what is not resolved. A key book that cannot be read is reported by the commands that need it.
    func report() {
        guard let (people, folder) = place.withLock({ $0 }),
            let alarms = try? people.peopleAlarms().filter(\.isOpen), !alarms.isEmpty
        else { return }
        for alarm in alarms.suffix(Self.linesMax) {
            Terminal.writeError(
                "ALARM \(alarm.evidence.kind.rawValue): \(Screen.safe(alarm.evidence.summary)). "
                    + "\(Self.evidence(alarm, folder)) 'thicket keylog' says more.\n")
        }
        if alarms.count > Self.linesMax { Terminal.writeError("\(alarms.count - Self.linesMax) earlier alarms\n") }
    }

    /// Writes the evidence of an alarm, if it is not written yet.
    ///
    /// - Returns: a sentence for the user.
    private static func evidence(_ alarm: PeopleAlarm, _ folder: String) -> String {
        let bytes = Pretty.bytes(.object(alarm.evidence.json))
        let name = Hex.encode(Array(Hash.sha256(bytes).prefix(nameBytes)))
        let path = "\(folder)/\(alarm.evidence.kind.rawValue)-\(name).json"
        do throws(Failure) {
            if case .bytes(let known) = Files.read(path, bytesMax: KeyLogEvidence.fileBytesMax), known == bytes {
                return sentence(path)
            }
            try Files.makeFolder(folder)
            try Files.replace(path, bytes, mode: 0o644)
            return sentence(path)
        } catch { return "The evidence could not be written: \(error.text)." }
    }

    private static func sentence(_ path: String) -> String {
        "Evidence: \(Screen.safe(path)); 'thicket verify-evidence FILE' says what it proves."
    }

    /// Bytes of a digest in the name of a file.
    private static let nameBytes = 8
}
