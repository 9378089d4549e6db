"""What every process of a node needs: settings, addresses, the data directory, certificates. Touches the machine."""
