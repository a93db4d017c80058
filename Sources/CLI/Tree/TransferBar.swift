import Synchronization
import ThicketCommandLine
import ThicketTreesystem

/// How far a transfer of files is: one line on a terminal, with rate and remaining time.
///
/// `sending  [#####     ]  50 %  1.0 of 2.0 GiB  24.1 MiB/s  42 s left  17 of 2000 files`
final class TransferBar: Sendable {
    private struct State {
        var bytes: UInt64 = 0
        var files = 0
        /// Bytes of transfers that run, by their number.
        var running = [UInt64: UInt64]()
        var isDrawn = false
        /// Times and bytes of the last seconds, for the rate.
        var moments = [(time: Duration, bytes: UInt64)]()
        var lastDrawn: Duration?
    }

    private let label: String
    private let totalBytes: UInt64
    private let totalFiles: Int
    private let isShown: Bool
    private let state = Mutex(State())

    /// Times that the rate is averaged over.
    private static let window = Duration.seconds(5)
    private static let momentsMax = 128
    /// Shortest time between two drawings.
    private static let pause = Duration.milliseconds(100)

    /// - Parameter isShown: nil: when standard error is a terminal.
    init(_ label: String, bytes: UInt64, files: Int, isShown: Bool? = nil) {
        (self.label, totalBytes, totalFiles) = (label, bytes, files)
        self.isShown = isShown ?? Terminal.isTerminal(Terminal.standardError)
    }

    /// A transfer moved on.
    func update(_ number: UInt64, bytes: UInt64) { change { $0.running[number] = bytes } }

    /// A file is over: transferred, the same already, or left out.
    func finish(_ number: UInt64, bytes: UInt64) {
        change { state in
            state.running[number] = nil
            state.bytes += bytes
            state.files += 1
        }
    }

    /// Time between two looks at the uploads.
    private static let lookPause = Duration.milliseconds(200)

    /// Shows the progress of a tree's uploads until the task is cancelled.
    func following(uploadsOf tree: Treesystem) -> Task<Void, Never> {
        Task {
            while !Task.isCancelled {
                let uploads = (try? await tree.queue) ?? []
                update(0, bytes: uploads.reduce(0) { $0 + ($1.progress?.bytes ?? 0) })
                // A sleep that was cancelled ends the loop.
                try? await Task.sleep(for: Self.lookPause)
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            guard isShown else { return }
            let now = ProgressBar.steadyTime()
            if let last = state.lastDrawn, now - last < Self.pause { return }
            draw(&state, now)
        }
    }

    private func draw(_ state: inout State, _ now: Duration) {
        state.lastDrawn = now
        state.isDrawn = true
        let done = state.bytes + state.running.values.reduce(0, +)
        state.moments.append((now, done))
        while state.moments.count > 2,
            state.moments[1].time < now - Self.window || state.moments.count > Self.momentsMax
        {
            state.moments.removeFirst()
        }
        let (first, elapsed) = (state.moments[0], now - state.moments[0].time)
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let rate = seconds > 0.2 && done > first.bytes ? UInt64(Double(done - first.bytes) / seconds) : 0
        let line = Self.line(
            label, bytes: done, of: totalBytes, files: state.files, ofFiles: totalFiles, rate: rate,
            columns: Terminal.columns())
        Terminal.write(Array("\r\(line)\u{1B}[K".utf8), to: Terminal.standardError)
    }

    /// Erases the line.
    func clear() {
        state.withLock { state in
            guard state.isDrawn else { return }
            state.isDrawn = false
            Terminal.write(Array("\r\u{1B}[K".utf8), to: Terminal.standardError)
        }
    }

    /// The line itself, at most one column shorter than the terminal.
    ///
    /// - Parameter rate: bytes per second; 0: not known.
    static func line(
        _ label: String, bytes: UInt64, of total: UInt64, files: Int, ofFiles: Int, rate: UInt64, columns: Int
    ) -> String {
        let share = total == 0 ? 1 : min(1, Double(bytes) / Double(total))
        let speed = rate > 0 ? "  \(TreeText.size(rate))/s" : ""
        let left = rate > 0 && bytes < total ? "  \(time((total - bytes) / rate + 1)) left" : ""
        let count = ofFiles > 1 ? "  \(files) of \(ofFiles) files" : ""
        let tail = "  \(Int(share * 100)) %  \(TreeText.size(bytes)) of \(TreeText.size(total))\(speed)\(left)\(count)"
        let room = min(30, columns - label.count - tail.count - 6)
        guard room >= 5 else { return String("\(label)\(tail)".prefix(max(0, columns - 1))) }
        let full = Int(Double(room) * share)
        let bar = String(repeating: "#", count: full) + String(repeating: " ", count: room - full)
        return "\(label)  [\(bar)]\(tail)"
    }

    /// `42 s`, `3 min 20 s`, `2 h 5 min`.
    static func time(_ seconds: UInt64) -> String {
        switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3_600: "\(seconds / 60) min \(seconds % 60) s"
        default: "\(seconds / 3_600) h \(seconds % 3_600 / 60) min"
        }
    }
}
