// swift-tools-version: 6.2
import PackageDescription

/// For every target of this package: Swift 6 mode, and a warning fails the build.
let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

func library(
    _ name: String, _ path: String, _ needs: [Target.Dependency], exclude: [String] = [],
    resources: [Resource] = [], settings: [SwiftSetting] = []
) -> Target {
    .target(
        name: name, dependencies: needs, path: path, exclude: exclude, resources: resources,
        swiftSettings: strict + settings)
}

/// The server's state belongs to one thread each. Debug builds, which all tests use, check at every access that a
/// property is not changed during another access to it; in release builds the checks took a tenth of the loop's time.
/// No product for other packages contains these targets.
let singleThreaded: [SwiftSetting] = [
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))
]

func program(_ name: String, _ path: String, _ needs: [Target.Dependency], exclude: [String] = []) -> Target {
    .executableTarget(name: name, dependencies: needs, path: path, exclude: exclude, swiftSettings: strict)
}

func tests(_ name: String, _ needs: [Target.Dependency]) -> Target {
    .testTarget(
        name: name, dependencies: needs + ["ThicketBlocking"], path: "Tests/\(name)", swiftSettings: strict)
}

let package = Package(
    name: "thicket",
    // For the client library, whose Linux-only parts are marked: these versions have Synchronization. The server runs
    // on Linux.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "ThicketProtocol", targets: ["ThicketProtocol"]),
        .library(name: "ThicketClient", targets: ["ThicketClient"]),
        .executable(name: "thicketd", targets: ["thicketd"]),
        .executable(name: "thicket", targets: ["thicket"]),
    ],
    targets: [
        .systemLibrary(name: "CSQLite", path: "Sources/CLibs/CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "COpenSSL", path: "Sources/CLibs/COpenSSL", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CCurl", path: "Sources/CLibs/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CZlib", path: "Sources/CLibs/CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CUTF8Proc", path: "Sources/CLibs/CUTF8Proc", providers: [.apt(["libutf8proc-dev"])]),
        .systemLibrary(name: "CThicketNet", path: "Sources/CLibs/CThicketNet"),
        .systemLibrary(name: "CThicketTLS", path: "Sources/CLibs/CThicketTLS", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CThicketScreen", path: "Sources/CLibs/CThicketScreen", providers: [.apt(["libncurses-dev"])]),
        .systemLibrary(name: "CThicketFiles", path: "Sources/CLibs/CThicketFiles"),
        .systemLibrary(name: "CThicketCores", path: "Sources/CLibs/CThicketCores"),
        .systemLibrary(name: "CThicketSpawn", path: "Sources/CLibs/CThicketSpawn"),

        library("ThicketCommandLine", "Sources/CommandLine", []),
        library("ThicketProtocol", "Sources/Protocol", []),
        library("ThicketCrypto", "Sources/Crypto", ["COpenSSL", "CUTF8Proc"]),
        // Authentication and authorization: pure decisions over directories that are passed in.
        library("ThicketAuth", "Sources/Auth", ["ThicketProtocol", "ThicketCrypto"]),
        // Sealed buckets: what devices do with content that the server cannot read. Pure.
        library(
            "ThicketSealed", "Sources/Sealed", ["ThicketSealedShape", "ThicketProtocol", "ThicketCrypto"],
            exclude: ["Wire"]),
        // What a server can check of sealed content without being able to open it.
        library("ThicketSealedShape", "Sources/Sealed/Wire", ["ThicketProtocol", "ThicketCrypto"]),
        // Several accounts: ownership of keys, permission to read, authorship. Pure.
        library("ThicketSharing", "Sources/Sharing", ["ThicketProtocol", "ThicketCrypto", "ThicketSealed"]),
        library("ThicketSQLite", "Sources/SQLite", ["CSQLite"]),
        library(
            "ThicketServer", "Sources/Server",
            [
                "ThicketProtocol", "ThicketCrypto", "ThicketAuth", "ThicketSealedShape", "ThicketSQLite",
                "ThicketCommandLine", "CThicketCores", "CThicketNet", "CThicketTLS", "CCurl",
            ],
            exclude: ["Main"], resources: [.embedInCode("REST/openapi.yaml")], settings: singleThreaded),
        program("thicketd", "Sources/Server/Main", ["ThicketServer", "ThicketCommandLine"]),
        library(
            "ThicketClient", "Sources/Client",
            ["ThicketProtocol", "ThicketCrypto", "ThicketSealed", "ThicketSQLite", "CCurl"], exclude: ["CLI", "Main"]),
        // Encrypted notes, on top of the client library.
        library("ThicketOnions", "Sources/Onions", ["ThicketClient", "ThicketProtocol", "ThicketCrypto"]),
        library(
            "ThicketReplay", "Sources/Replay",
            ["ThicketProtocol", "ThicketClient", "ThicketCrypto", "ThicketSealed", "CZlib", "CThicketSpawn"]),
        // Releases: manifests, their log, and proofs that a program belongs to a release. Pure.
        library("ThicketRelease", "Sources/Release", ["ThicketProtocol", "ThicketCrypto"], exclude: ["Main"]),
        program(
            "thicket-release", "Sources/Release/Main",
            ["ThicketRelease", "ThicketProtocol", "ThicketCrypto", "ThicketCommandLine"]),
        tests(
            "ReleaseTests",
            [
                "ThicketRelease", "ThicketProtocol", "ThicketCrypto", "ThicketProcesses", "ThicketTestSupport",
                "thicket-release", "thicket",
            ]),
        library(
            "ThicketCLI", "Sources/Client/CLI",
            [
                "ThicketClient", "ThicketOnions", "ThicketRelease", "ThicketReplay", "ThicketProtocol", "ThicketCrypto",
                "ThicketCommandLine", "CThicketFiles", "CThicketScreen",
            ]),
        program("thicket", "Sources/Client/Main", ["ThicketCLI"]),

        program("thicket-demo", "Sources/Demo", ["ThicketReplay", "ThicketClient", "ThicketSealed", "ThicketSQLite"]),
        // Compares a run's figures with those of an earlier one. Pure; outside the program, so that tests can import it.
        library("ThicketBenchComparison", "Bench/Comparison", ["ThicketProtocol"]),
        tests("BenchTests", ["ThicketBenchComparison"]),
        program(
            "thicket-bench", "Bench",
            [
                "ThicketBenchComparison", "ThicketReplay", "ThicketClient", "ThicketServer", "ThicketAuth",
                "ThicketProtocol", "ThicketCrypto",
                "ThicketSealed", "ThicketSQLite", "CThicketNet", "CThicketCores", "COpenSSL",
            ], exclude: ["Baselines", "Comparison"]),

        // The whole system in one process on a virtual clock: for SimulationTests and `./dev soak`.
        library(
            "ThicketSimulation", "Sources/Simulation",
            [
                "ThicketServer", "ThicketClient", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite", "ThicketSealed",
            ]),
        program("thicket-soak", "Sources/Soak", ["ThicketSimulation", "ThicketCommandLine"]),
        tests("SimulationTests", ["ThicketSimulation", "ThicketNonces"]),

        library(
            "ThicketTestSupport", "Tests/Support", ["ThicketProtocol"],
            exclude: ["TestServer", "Allocations", "Nonces", "Blocking"]),
        // ThicketBlocking: threads for tests that block. ThicketNonces, for tests that seal: detects a nonce that is
        // used twice with one key.
        library("ThicketBlocking", "Tests/Support/Blocking", []),
        library("ThicketNonces", "Tests/Support/Nonces", ["ThicketCrypto"]),
        // Counts heap allocations, for the tests that link it.
        .target(name: "CThicketAllocations", path: "Tests/Support/Allocations"),
        library(
            "ThicketTestServer", "Tests/Support/TestServer",
            ["ThicketServer", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport"]),
        library(
            "ThicketFuzz", "Fuzz/Targets",
            [
                "ThicketProtocol", "ThicketCrypto", "ThicketAuth", "ThicketSealed", "ThicketClient", "ThicketOnions",
                "ThicketRelease", "ThicketSharing",
            ]),
        // The entry point of libFuzzer. Fuzz/run links it with the fuzzer; this target only checks that it compiles.
        library("ThicketFuzzer", "Fuzz/Main", ["ThicketFuzz"]),
        tests("CommandLineTests", ["ThicketCommandLine", "ThicketProcesses"]),
        tests(
            "ProtocolTests",
            ["ThicketProtocol", "ThicketCrypto", "ThicketFuzz", "ThicketTestSupport", "ThicketNonces"]),
        tests(
            "SharingTests",
            [
                "ThicketSharing", "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "ThicketNonces",
                "ThicketTestSupport",
            ]),
        tests("SQLiteTests", ["ThicketSQLite", "ThicketTestSupport"]),
        tests(
            "AuthTests",
            [
                "ThicketAuth", "ThicketTestServer", "ThicketServer", "ThicketProtocol", "ThicketCrypto",
                "ThicketSQLite",
                "ThicketTestSupport", "CThicketAllocations",
            ]),
        tests("CryptoTests", ["ThicketCrypto", "ThicketProtocol", "ThicketTestSupport", "ThicketNonces"]),
        tests(
            "OnionTests",
            [
                "ThicketOnions", "ThicketClient", "ThicketProtocol", "ThicketCrypto", "ThicketServer", "ThicketAuth",
                "ThicketTestServer", "ThicketTestSupport", "ThicketProcesses",
            ]),
        tests(
            "SealedTests",
            [
                "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "ThicketProcesses",
                "ThicketNonces",
            ]),
        tests(
            "ServerTests",
            [
                "ThicketServer", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite",
                "ThicketSealedShape",
                "ThicketCommandLine", "ThicketTestSupport", "ThicketProcesses", "ThicketSweep", "CThicketCores",
                "CThicketNet", "CThicketAllocations",
            ]),
        tests(
            "IntegrationTests",
            [
                "ThicketTestServer", "ThicketServer", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite",
                "ThicketTestSupport",
            ]),
        library(
            "ThicketProcesses", "Tests/Processes",
            ["ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "CThicketSpawn"]),
        // A model of the server on a disk that crashes or fails at every call.
        library(
            "ThicketSweep", "Tests/Sweep",
            [
                "ThicketServer", "ThicketSQLite", "ThicketProtocol", "ThicketCrypto", "ThicketSealed",
                "ThicketProcesses",
                "ThicketTestSupport",
            ]),
        program("thicket-crash", "Tests/Crash", ["ThicketProcesses", "ThicketSweep", "ThicketCommandLine"]),
        // Hours of mixed load on a real server.
        library(
            "ThicketEndurance", "Tests/Endurance",
            ["ThicketProcesses", "ThicketClient", "ThicketProtocol", "ThicketTestSupport"]),
        program("thicket-endure", "Tests/Endure", ["ThicketEndurance", "ThicketProcesses", "ThicketCommandLine"]),
        tests(
            "ProcessTests",
            [
                "ThicketProcesses", "ThicketEndurance", "ThicketProtocol", "ThicketServer", "ThicketSQLite",
                "ThicketTestSupport", "thicketd", "thicket",
            ]),
        // Attackers over HTTP and sockets against a real server.
        library(
            "ThicketThreats", "Tests/Threats",
            ["ThicketProcesses", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "CZlib"]),
        program("thicket-threats", "Tests/ThreatRun", ["ThicketThreats", "ThicketProcesses", "ThicketCommandLine"]),
        tests(
            "ThreatTests",
            [
                "ThicketThreats", "ThicketProcesses", "ThicketClient", "ThicketSealed", "ThicketOnions",
                "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "thicketd", "thicket",
            ]),
        // Runs the programs in Examples/ against a real server.
        tests(
            "ExampleTests",
            [
                "ThicketClient", "ThicketProcesses", "ThicketProtocol", "ThicketTestSupport", "thicketd",
            ]),
        tests("TidyTests", ["ThicketServer", "ThicketProtocol", "ThicketCLI", "ThicketCommandLine"]),
        tests(
            "ReplayTests",
            [
                "ThicketSealed", "ThicketReplay", "ThicketClient", "ThicketProtocol", "ThicketTestSupport",
                "ThicketProcesses",
                "thicketd",
                "thicket-demo",
            ]),
        tests(
            "CLITests",
            [
                "ThicketCLI", "ThicketClient", "ThicketCommandLine", "ThicketProcesses", "ThicketProtocol",
                "ThicketCrypto", "ThicketTestSupport", "ThicketThreats", "thicketd", "thicket",
            ]),
        tests(
            "ClientTests",
            [
                "ThicketClient", "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite", "ThicketServer",
                "ThicketAuth", "ThicketTestServer", "ThicketTestSupport", "ThicketProcesses", "ThicketNonces",
                "ThicketSharing",
            ]),
    ]
)
