import Glibc
import ThicketProcesses
import ThicketThreats

/// The command `thicket` with a home of its own, for an account with keys at a `ThreatHouse`.
struct TreeRun {
    let place: TemporaryFolder
    private let house: ThreatHouse
    private let extra: [String: String]

    /// - Parameter extra: more environment variables.
    init(_ house: ThreatHouse, _ name: String, _ extra: [String: String] = [:]) {
        (place, self.house, self.extra) = (TemporaryFolder(name), house, extra)
    }

    private init(_ place: TemporaryFolder, _ house: ThreatHouse, _ extra: [String: String]) {
        (self.place, self.house, self.extra) = (place, house, extra)
    }

    /// The same homes, with other environment variables.
    func with(_ variables: [String: String]) -> TreeRun {
        TreeRun(place, house, extra.merging(variables) { $1 })
    }

    func path(_ name: String) -> String { "\(place.path)/\(name)" }

    func variables(_ home: String) -> [String: String] {
        [
            "HOME": place.path, "THICKET_HOME": path(home), "TMPDIR": place.path, "XDG_RUNTIME_DIR": "",
            "THICKET_PASSWORD": "sesame", "SWIFT_BACKTRACE": "enable=no", "THICKET_CHEAP_PASSPHRASES": "1",
        ].merging(extra) { $1 }
    }

    /// Runs `thicket`.
    ///
    /// - Parameter codes: that are expected.
    @discardableResult
    func run(
        _ words: [String], home: String = "one", input: String = "", codes: Set<Int32> = [0]
    ) throws -> ChildProcess.Outcome {
        let outcome = try ChildProcess.run([Programs.thicket] + words, input: input, variables: variables(home))
        guard let code = outcome.code, codes.contains(code) else { throw ProcessError("thicket \(words): \(outcome)") }
        return outcome
    }

    func start(_ words: [String], home: String = "one") throws -> ChildProcess {
        try ChildProcess([Programs.thicket] + words, variables: variables(home))
    }

    /// Makes an account, or signs another home in.
    func signUp(_ verb: String = "signup", home: String = "one", as user: String = "ann") throws {
        let address = "http://127.0.0.1:\(house.port)"
        try run(
            [verb, "--server", address, "--app", ThreatHouse.app, "--api-key", house.apiKey, "--user", user],
            home: home)
    }

    /// Runs a line of shell in the folder of the run.
    func shell(_ line: String) throws {
        let outcome = try ChildProcess.run(["/bin/bash", "-c", "cd \"$0\" && \(line)", place.path])
        guard outcome.code == 0 else { throw ProcessError("\(line): \(outcome)") }
    }
}
